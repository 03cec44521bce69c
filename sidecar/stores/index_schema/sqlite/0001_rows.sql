-- Conversations, their rows, and what rows are found by. Moments are microseconds since the epoch.
CREATE TABLE conv_conversations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    user_id TEXT NOT NULL,
    conversation_id TEXT NOT NULL,
    change INTEGER NOT NULL DEFAULT 0,
    next_block INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    holder TEXT NOT NULL DEFAULT '',
    label TEXT NOT NULL DEFAULT '',
    expires INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant, project, user_id, conversation_id)
) STRICT;

CREATE TABLE conv_messages (
    id INTEGER PRIMARY KEY,
    conversation INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    turn_id TEXT NOT NULL,
    role TEXT NOT NULL,
    origin TEXT NOT NULL,
    ts INTEGER NOT NULL,
    change INTEGER NOT NULL,
    ttl_days INTEGER NOT NULL,
    user_type TEXT NOT NULL,
    bundle_id TEXT NOT NULL,
    hosted_uri TEXT NOT NULL,
    key TEXT NOT NULL,
    rn TEXT NOT NULL,
    tags TEXT NOT NULL, -- a JSON array, in the order given
    words INTEGER NOT NULL, -- how many different ones
    text TEXT NOT NULL,
    UNIQUE (conversation, message_id)
) STRICT;
CREATE INDEX conv_messages_newest ON conv_messages (conversation, ts, change, message_id);
CREATE INDEX conv_messages_change ON conv_messages (conversation, change);
CREATE INDEX conv_messages_turn ON conv_messages (conversation, turn_id, ts, change, message_id);
CREATE INDEX conv_messages_kind ON conv_messages (conversation, kind, ts, change, message_id);

CREATE TABLE conv_tags (
    conversation INTEGER NOT NULL,
    tag TEXT NOT NULL,
    id INTEGER NOT NULL,
    PRIMARY KEY (conversation, tag, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX conv_tags_row ON conv_tags (id);

-- 32-bit numbers, little-endian, of length one. Apart from the rows, whose texts they would push out of reach.
CREATE TABLE conv_vectors (
    id INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
) STRICT;

CREATE TABLE conv_facts (
    conversation INTEGER NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (conversation, name)
) STRICT, WITHOUT ROWID;

-- The words are ours (core/ranking.py) and come apart at blanks; `#7` among them says that the row is of conversation 7,
-- so that two conversations never have to be read for one. Which words a row holds is all that is kept.
CREATE VIRTUAL TABLE conv_words USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = "ascii tokenchars '_#'"
);
