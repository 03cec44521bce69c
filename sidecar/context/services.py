"""All that serves the older context, put together."""

from __future__ import annotations

from dataclasses import dataclass

from sidecar.context.binding import Binder
from sidecar.context.fetching import Fetcher
from sidecar.context.finding import Finder
from sidecar.context.records import Records
from sidecar.context.showing import Shower
from sidecar.context.slots import SlotMapper
from sidecar.looking import Looker
from sidecar.reading import Reader
from sidecar.rehost import Rehoster
from sidecar.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ContextServices:
    """What a handler of `context/*` may need."""

    records: Records
    finder: Finder
    fetcher: Fetcher
    binder: Binder
    slots: SlotMapper
    shower: Shower


def context_services(workspace: Workspace, looker: Looker, reader: Reader, rehoster: Rehoster) -> ContextServices:
    records = Records(workspace, looker)
    finder = Finder(workspace, records, reader)
    return ContextServices(
        records=records,
        finder=finder,
        fetcher=Fetcher(workspace, finder),
        binder=Binder(workspace, finder, rehoster),
        slots=SlotMapper(workspace, records, finder),
        shower=Shower(finder, rehoster),
    )
