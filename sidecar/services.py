"""Everything a handler may need, built once by the daemon."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sidecar.attaching import Attaching
from sidecar.calls import Calls
from sidecar.cataloguing import Cataloguing
from sidecar.channels import Channels
from sidecar.compacting import Compacting
from sidecar.context.mirror import Mirror
from sidecar.context.services import ContextServices
from sidecar.conversation.archive import Archive
from sidecar.conversation.contributing import Contributions
from sidecar.conversation.feedback import Feedback
from sidecar.conversation.finding import Finding
from sidecar.conversation.lease import Lease
from sidecar.conversation.reacting import Reacting
from sidecar.conversation.resuming import Resumer
from sidecar.conversation.saving import Saver
from sidecar.hiding import Hiding
from sidecar.hosting import Hosting
from sidecar.landing import Landing
from sidecar.lineage import Lineage
from sidecar.linking import Links
from sidecar.looking import Looker
from sidecar.noting import Noted
from sidecar.outlining import Outlining
from sidecar.patches import Patches
from sidecar.ports import OutDir
from sidecar.pulling import Puller
from sidecar.reading import Reader
from sidecar.rehost import Rehoster
from sidecar.rendering import Rendering
from sidecar.turns import Turns
from sidecar.unchanged import Unchanged
from sidecar.versions import Versions
from sidecar.views import Views
from sidecar.workspace import Workspace
from sidecar.writing import Writing


@dataclass(frozen=True, slots=True)
class Services:
    """`watch_state` and `clients` answer for the parts that only the daemon knows."""

    workspace: Workspace
    looker: Looker
    outdir: OutDir
    rehoster: Rehoster
    puller: Puller
    noted: Noted
    reader: Reader
    turns: Turns
    calls: Calls
    attaching: Attaching
    views: Views
    hosting: Hosting
    links: Links
    landing: Landing
    writing: Writing
    patches: Patches
    hiding: Hiding
    rendering: Rendering
    compacting: Compacting
    archive: Archive
    feedback: Feedback
    finding: Finding
    contributions: Contributions
    lease: Lease
    resumer: Resumer
    reacting: Reacting
    saver: Saver
    context: ContextServices
    mirror: Mirror
    lineage: Lineage
    outlining: Outlining
    versions: Versions
    catalogue: Cataloguing
    channels: Channels
    watch_state: Callable[[], dict[str, Any]]
    clients: Callable[[], list[dict[str, Any]]]
    uptime: Callable[[], float]
    unchanged: Unchanged = field(default_factory=Unchanged)
