"""Every limit of the daemon, named once. Sizes are bytes, times are seconds."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB

# Paths (spec section 3).
PATH_BYTES = 4096
SEGMENT_BYTES = 255

# Watching (spec section 5).
FILES_REGISTERED = 200_000
FOLDERS_WATCHED = 20_000
FOLDER_DEPTH = 64
HASHED_BYTES = 2 * GIB
STILL_OPEN_WAIT = 2.0

# Kept versions (spec section 8).
KEPT_FILE_BYTES = 64 * MIB
KEEP_BYTES = 5 * GIB
FREE_DISK_SHARE = 0.05

# Sources (spec section 6).
MERGE_ROWS = 1000
ROW_BYTES = 256 * KIB
ROW_BASE64_CHARS = 4000
PROPOSED_SID_AHEAD = 1000
TOKEN_BYTES = 4 * KIB
STREAMS_PER_CONNECTION = 64
STREAM_IDLE = 600.0

# Inline content (spec section 7).
INLINE_TEXT_BYTES = 256 * KIB
INLINE_BASE64_BYTES = 4 * MIB

# Writing: the text of a display stands whole in the timeline; a patch is applied in memory.
DISPLAY_BYTES = 4 * MIB
PATCHED_BYTES = 16 * MIB

# Hiding (spec section 8): what lies further back than that is not touched any more.
EDITABLE_TAIL_TOKENS = 2000
EDITABLE_TAIL_BLOCKS = 4096

# Changes and blocks.
CHANGES_KEPT = 100_000
CHANGES_PAGE = 1000
BLOCKS_PAGE = 1000
LIST_PAGE = 1000
ANSWERS_KEPT = 10_000

# Outlines: how much of a turn's prompt stands for it.
TITLE_CHARS = 120

# An older version as a document in an editor.
OLD_VERSION_BYTES = 4 * MIB

# Search (spec section 7).
SEARCH_PATTERN_BYTES = 1000
SEARCH_PATTERN_MEMORY = 2 * MIB  # of a pattern that was read, and of the states it was in
SEARCH_FILE_BYTES = 1_000_000
SEARCH_FILES = 2000
SEARCH_SECONDS = 10.0
SEARCH_HITS = 200
SEARCH_MATCHES = 1000  # of one file
SEARCH_CHARS = 4_000_000  # of all matched lines together
READ_BYTES = 16 * MIB  # of all contents in one answer
CALL_CONTENT_BYTES = 4 * MIB  # of all contents that the end of a call tells to the timeline
ATTACHED_CONTENT_BYTES = 16 * MIB  # of all attachments whose content the begin of a turn tells to the timeline

# Rendering: what is announced, and how much of what was rendered is held per role.
ANNOUNCED_BLOCKS = 100
ANNOUNCED_BYTES = 1 * MIB
RENDERED_HELD_BYTES = 32 * MIB

# The older context: what a generator's sources may need where nobody gives a budget, and how much of one is shown.
BOUND_SOURCES_TOKENS = 24_000
SHOWN_ARTIFACT_CHARS = 4000

# Patching: a longer diff is refused, so that looking for its hunks takes bounded memory.
PATCH_LINES = 200_000

# Rehost.
REHOSTS_AT_ONCE = 8
REHOST_DEADLINE = 120.0

# Hosting: how long the end of a turn waits for it.
HOSTING_WAIT = 10.0

# Saving (spec section 10): how long the end of a turn waits for it, what one record and one row's text may hold, and
# what an archive of a program takes in.
SAVING_WAIT = 10.0
FEEDBACK_WAIT = 10.0  # of a reaction, for the store
RECORD_BYTES = 256 * MIB
ROW_TEXT_BYTES = 64 * KIB
ARCHIVE_ENTRIES = 2000
ARCHIVE_BYTES = 120 * MIB

# Who writes a conversation (spec section 10): how long a lease lasts without being renewed, how long a change waits for
# an index that says nothing, how many turn logs are read at once, and how many reactions are announced.
LEASE_SECONDS = 30.0
LONGEST_LEASE = 3600.0  # seconds; one that claims to last longer was made by a clock that was ahead, and is cut
CONFIRM_SECONDS = 2.0
LOGS_AT_ONCE = 8
FEEDBACKS_ANNOUNCED = 20

# Asset pulls (spec section 9): how far one pull follows a page; a notice names the limit that was met. Markdown and CSS
# are read by parsers written in Python, which take seconds for what the others read in a tenth of one.
ASSET_BYTES = 32 * MIB
ASSET_MARKDOWN_BYTES = 2 * MIB
ASSET_CSS_BYTES = 1 * MIB
ASSET_CSS_RULE_BYTES = 64 * KIB
ASSET_REFERENCES = 10_000
ASSET_DEPTH = 5
ASSET_SECONDS = 10.0

# Editors: a longer text is shown as it is, and what comes after so many references in one is not looked at.
REFERENCED_CHARS = 2 * MIB
REFERENCES_IN_TEXT = 5000
EDITOR_PICTURE_BYTES = 128 * KIB  # a larger one is shown from its file

# Lineage: what is kept of one call's uses, how many texts of its params are read as paths, and how far an answer goes.
USES_PER_CALL = 10_000
NAMED_PATHS = 1000
LINEAGE_DEPTH = 10
LINEAGE_EDGES = 10_000
LINEAGE_LOOKS = 200_000

# The wire (one client).
HEADER_BYTES = 4 * KIB
MESSAGE_BYTES = 64 * MIB
MESSAGE_VALUES = 1_000_000
REQUESTS_IN_FLIGHT = 256
BULKY_AT_ONCE = 4  # answers with contents that are made for one client at a time
OUT_SOFT_BYTES = 1 * MIB
OUT_HARD_BYTES = 32 * MIB
FRAME_SECONDS = 30.0  # for a message to arrive, and of a long one for each step
FRAME_STEP_BYTES = 1 * MIB
BYTES_IN_FLIGHT = 2 * MESSAGE_BYTES
MESSAGES_AT_ONCE = 64
SECONDS_AT_ONCE = 0.001
CONNECTIONS_PER_UID = 256
HELD_BYTES = 1 * GIB  # of all clients of one role: half messages, params under way, answers that are not read

# Journal (spec section 10): what one commit may hold.
COMMIT_GROUPS = 256
COMMIT_BYTES = 8 * MIB
