-- The rows of the tree, made of what the feed knows: turns, their calls, artifacts, and the versions of these.

local feeds = require('artifact_sidecar.feed')
local look = require('artifact_sidecar.look')
local options = require('artifact_sidecar.options')

---@class artifact_sidecar.Node: artifact_sidecar.Row
---@field id string
---@field kind 'turn'|'call'|'other'|'artifact'|'version'|'more'|'note'
---@field key? string The shelf that stands below it.
---@field parent? string The id of the row above it in the tree.
---@field artifact? table
---@field version? integer

local M = {}

---@param depth integer
---@param icon string
---@param label string
---@param group string
---@param more table
---@return artifact_sidecar.Node
local function row(depth, icon, label, group, more)
  local before = ' ' .. ('  '):rep(depth) .. icon .. ' '
  more.text = before .. label
  more.marks = {
    { 0, #before, look.group(more.icon_group or 'Icon') },
    { #before, -1, look.group(group) },
  }
  return more
end

---@param texts { [1]: string?, [2]: string }[]
---@return { [1]: string, [2]: string }[]
local function detail(texts)
  local chunks = {}
  for _, text in ipairs(texts) do
    if text[1] and text[1] ~= '' then
      chunks[#chunks + 1] = { '  ' .. text[1], look.group(text[2]) }
    end
  end
  chunks[#chunks + 1] = { ' ', look.group('Detail') }
  return chunks
end

---@param nodes artifact_sidecar.Node[]
---@param feed artifact_sidecar.Feed
---@param artifact table
---@param depth integer
---@param parent string
local function versions(nodes, feed, artifact, depth, parent)
  local icons = options.get().icons
  local shelf = feed.shelves[feeds.versions_key(artifact.artifact_path)]
  local rows = shelf and shelf.rows or {}
  for at = #rows, 1, -1 do
    local version = rows[at]
    local latest = at == #rows and 'latest' or nil
    nodes[#nodes + 1] = row(depth, icons.version, ('v%d'):format(version.version), 'Version', {
      id = ('%s\n%d'):format(parent, version.version),
      kind = 'version',
      parent = parent,
      artifact = artifact,
      version = version.version,
      detail = detail({
        { latest, 'Number' },
        { look.time(version.ts), 'Detail' },
        { look.size(version.size_bytes), 'Detail' },
      }),
    })
  end
end

---@param nodes artifact_sidecar.Node[]
---@param feed artifact_sidecar.Feed
---@param key string
---@param depth integer
---@param parent string
local function shelf_rows(nodes, feed, key, depth, parent)
  local icons, shelf = options.get().icons, feed.shelves[key]
  if not shelf then
    return
  end
  for _, artifact in ipairs(shelf.rows) do
    local id = parent .. '\n' .. artifact.artifact_path
    local below = artifact.version > 1 and feeds.versions_key(artifact.artifact_path) or nil
    local opened = below and feed.open[below]
    local icon = below and (opened and icons.open or icons.closed)
      or not artifact.on_disk and artifact.kind == 'file' and icons.absent
      or artifact.kind == 'display' and icons.display
      or icons.artifact
    local gone = artifact.kind == 'file' and not artifact.on_disk
    local label = artifact.name or artifact.physical_path or artifact.artifact_path
    nodes[#nodes + 1] = row(depth, icon, label, gone and 'Absent' or 'Name', {
      id = id,
      kind = 'artifact',
      key = below,
      parent = parent,
      artifact = artifact,
      detail = detail({
        { gone and 'not here' or nil, 'Absent' },
        { artifact.version > 1 and ('v%d'):format(artifact.version) or nil, 'Version' },
        { artifact.sid and ('[%d]'):format(artifact.sid) or nil, 'Number' },
        { look.size(artifact.size_bytes), 'Detail' },
      }),
    })
    if below then
      feed:describe(below, 'artifact/versions', { path = artifact.artifact_path }, 'versions')
      if opened then
        versions(nodes, feed, artifact, depth + 1, id)
      end
    end
  end
  local note = shelf.problem or shelf.cursor and 'more' or nil
  if note then
    nodes[#nodes + 1] = row(depth, icons.more, note, shelf.problem and 'Warning' or 'Detail', {
      id = parent .. '\nmore',
      kind = shelf.problem and 'note' or 'more',
      key = key,
      parent = parent,
    })
  end
end

---@param nodes artifact_sidecar.Node[]
---@param feed artifact_sidecar.Feed
---@param turn artifact_sidecar.Turn
local function turn_rows(nodes, feed, turn)
  local icons, key = options.get().icons, feeds.key(turn.turn_id)
  local opened, running = feed.open[key], turn.status == 'open'
  local title = look.line(turn.title)
  nodes[#nodes + 1] = row(0, opened and icons.open or icons.closed, title ~= '' and title or turn.turn_id, 'Turn', {
    id = key,
    kind = 'turn',
    key = key,
    spare = title ~= '',
    detail = detail({
      { title ~= '' and turn.turn_id or nil, 'Detail' },
      { running and 'open' or nil, 'Open' },
      { ('%d'):format(turn.artifacts), 'Detail' },
    }),
  })
  if not opened then
    return
  end
  for _, call in ipairs(turn.calls) do
    if call.artifacts > 0 then
      local below = feeds.key(turn.turn_id, call.tool_call_id)
      local icon = feed.open[below] and icons.open or icons.closed
      nodes[#nodes + 1] = row(1, icon, call.tool_id or call.tool_call_id, 'Call', {
        id = below,
        kind = 'call',
        key = below,
        parent = key,
        spare = call.tool_id ~= nil,
        detail = detail({
          { call.tool_id and call.tool_call_id, 'Detail' },
          { ('%d'):format(call.artifacts), 'Detail' },
        }),
      })
      if feed.open[below] then
        shelf_rows(nodes, feed, below, 2, below)
      end
    end
  end
  if feed.asked[key] then
    shelf_rows(nodes, feed, key, 1, key)
  end
end

--- All rows, the newest turn first.
---@param feed artifact_sidecar.Feed
---@return artifact_sidecar.Node[]
function M.rows(feed)
  local nodes, outline = {}, feed.outline
  if not outline then
    for _, line in ipairs(vim.split(feed.problem or 'asking …', '\n')) do
      local group = feed.problem and 'Warning' or 'Detail'
      nodes[#nodes + 1] = row(0, '', line, group, { id = 'note' .. #nodes, kind = 'note' })
    end
    return nodes
  end
  for at = #outline.turns, 1, -1 do
    turn_rows(nodes, feed, outline.turns[at])
  end
  if outline.other > 0 then
    local icons, opened = options.get().icons, feed.open[feeds.OTHER]
    nodes[#nodes + 1] = row(0, opened and icons.open or icons.closed, 'Other files', 'Turn', {
      id = feeds.OTHER,
      kind = 'other',
      key = feeds.OTHER,
      detail = detail({ { ('%d'):format(outline.other), 'Detail' } }),
    })
    if opened then
      shelf_rows(nodes, feed, feeds.OTHER, 1, feeds.OTHER)
    end
  end
  if #nodes == 0 then
    local words = 'Nothing was made yet. What lands in OUT_DIR shows up here.'
    nodes[1] = row(0, '', words, 'Detail', { id = 'note', kind = 'note' })
  end
  return nodes
end

return M
