-- Conversations, their rows, and what rows are found by.
CREATE EXTENSION IF NOT EXISTS vector;

CREATE TABLE conv_conversations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL,
    project text NOT NULL,
    user_id text NOT NULL,
    conversation_id text NOT NULL,
    change bigint NOT NULL DEFAULT 0,
    next_block bigint NOT NULL DEFAULT 0,
    generation bigint NOT NULL DEFAULT 0,
    holder text NOT NULL DEFAULT '',
    label text NOT NULL DEFAULT '',
    expires timestamptz NOT NULL DEFAULT 'epoch',
    UNIQUE (tenant, project, user_id, conversation_id)
);

-- Ids are compared byte by byte, whatever the database's language, so that ties are told apart as everywhere else.
CREATE TABLE conv_messages (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    conversation bigint NOT NULL,
    message_id text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    turn_id text NOT NULL,
    role text NOT NULL,
    origin text NOT NULL,
    ts timestamptz NOT NULL,
    change bigint NOT NULL,
    ttl_days integer NOT NULL,
    user_type text NOT NULL,
    bundle_id text NOT NULL,
    hosted_uri text NOT NULL,
    key text NOT NULL,
    rn text NOT NULL,
    tags text[] NOT NULL,
    words integer NOT NULL,
    text text NOT NULL,
    found_by tsvector NOT NULL, -- our own words (core/ranking.py), each once, untouched by any language
    embedding vector, -- of length one
    UNIQUE (conversation, message_id)
);
CREATE INDEX conv_messages_newest ON conv_messages (conversation, ts, change, message_id);
CREATE INDEX conv_messages_change ON conv_messages (conversation, change);
CREATE INDEX conv_messages_turn ON conv_messages (conversation, turn_id, ts, change, message_id);
CREATE INDEX conv_messages_kind ON conv_messages (conversation, kind, ts, change, message_id);
CREATE INDEX conv_messages_tags ON conv_messages USING gin (tags);
CREATE INDEX conv_messages_words ON conv_messages USING gin (found_by);
CREATE INDEX conv_messages_vectors ON conv_messages (conversation) WHERE embedding IS NOT NULL;

CREATE TABLE conv_facts (
    conversation bigint NOT NULL,
    name text NOT NULL,
    value text NOT NULL,
    PRIMARY KEY (conversation, name)
);
