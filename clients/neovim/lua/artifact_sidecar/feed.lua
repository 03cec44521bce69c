-- What the tree knows: the outline of turns and calls, and the rows of what was opened, kept fresh as things change.
--
-- Only what is open is asked for, a page at a time, and never twice at once: what changes while an answer is on its way
-- is asked for again when it has come.

local ask = require('artifact_sidecar.ask')
local options = require('artifact_sidecar.options')

---@class artifact_sidecar.Call
---@field tool_call_id string
---@field tool_id? string
---@field artifacts integer

---@class artifact_sidecar.Turn
---@field turn_id string
---@field ts? string
---@field title? string
---@field status? string
---@field artifacts integer
---@field calls artifact_sidecar.Call[]

---@class artifact_sidecar.Outline
---@field revision integer
---@field turns artifact_sidecar.Turn[]
---@field other integer

---@class artifact_sidecar.Shelf What stands below one row: artifacts, or versions of one.
---@field rows table[]
---@field cursor? string Where the next page begins; none after the last one.
---@field pages integer How many pages are wanted.
---@field stale boolean
---@field problem? string

---@class artifact_sidecar.Feed
---@field outline? artifact_sidecar.Outline
---@field problem? string
---@field open table<string, boolean>
---@field shelves table<string, artifact_sidecar.Shelf>
---@field asked table<string, { method: string, params: table, of: string }> How a shelf is filled.
---@field busy boolean
---@field again boolean
---@field began integer When the round that is under way began, in milliseconds.
---@field round integer
---@field changed fun()
---@field failed fun()
local Feed = {}
Feed.__index = Feed

local M = {}

local LOST = 15000 -- milliseconds after which a round is given up

---@param changed fun() Called whenever there is something new to show.
---@param failed fun() Called when there was no outline; a daemon that was killed takes what was under way with it.
---@return artifact_sidecar.Feed
function M.new(changed, failed)
  local feed = { open = {}, shelves = {}, asked = {}, busy = false, again = false, began = 0, round = 0 }
  feed.changed, feed.failed = changed, failed
  return setmetatable(feed, Feed)
end

---@param turn_id string
---@param tool_call_id? string None for what no call made.
---@return string
function M.key(turn_id, tool_call_id)
  return tool_call_id and ('call\n%s\n%s'):format(turn_id, tool_call_id) or 'turn\n' .. turn_id
end

M.OTHER = 'other'

---@param path string
---@return string
function M.versions_key(path)
  return 'versions\n' .. path
end

---@param key string
---@param method string
---@param params table
---@param of string The field of the answer that has the rows.
function Feed:describe(key, method, params, of)
  self.asked[key] = { method = method, params = params, of = of }
end

---@param key string
---@param open boolean
function Feed:set(key, open)
  self.open[key] = open or nil
  self.changed()
  if open then
    self:refresh()
  end
end

---@param key string
function Feed:more(key)
  local shelf = self.shelves[key]
  if shelf and shelf.cursor then
    shelf.pages = shelf.pages + 1
    shelf.stale = true
    self:refresh()
  end
end

--- All that was asked for may be wrong.
function Feed:spoil()
  for _, shelf in pairs(self.shelves) do
    shelf.stale = true
  end
end

--- Marks what these artifacts stand on, or will stand on: all of their turns, and their versions.
---@param artifacts table[]
function Feed:spoil_artifacts(artifacts)
  local turns, paths = {}, {}
  for _, artifact in ipairs(artifacts) do
    turns[artifact.turn_id or M.OTHER] = true
    paths[M.versions_key(artifact.artifact_path)] = true
  end
  for key, shelf in pairs(self.shelves) do
    local turn_id = key:match('^turn\n(.*)$') or key:match('^call\n([^\n]*)\n') or key
    shelf.stale = shelf.stale or turns[turn_id] or paths[key] or false
  end
end

--- Marks the shelves on which one of these files stands: it got a number.
---@param sources table[]
function Feed:spoil_sources(sources)
  local paths = {}
  for _, source in ipairs(sources) do
    paths[source.artifact_path or vim.NIL] = true
  end
  for _, shelf in pairs(self.shelves) do
    for _, artifact in ipairs(shelf.stale and {} or shelf.rows) do
      if artifact.artifact_path and paths[artifact.artifact_path] then
        shelf.stale = true
        break
      end
    end
  end
end

---@param list table[]
---@param step fun(item: table, done: fun())
---@param done fun()
local function each(list, step, done)
  local at = 0
  local function go()
    at = at + 1
    if at > #list then
      return done()
    end
    step(list[at], go)
  end
  go()
end

--- Asks for the pages that are wanted of one shelf; those it had stay until the new ones are there.
---@param key string
---@param done fun()
function Feed:fill(key, done)
  local asked = self.asked[key]
  local shelf = self.shelves[key] or { rows = {}, pages = 1, stale = true }
  self.shelves[key] = shelf
  shelf.stale = false
  local rows, pages = {}, 0
  local function page(cursor)
    local params = vim.tbl_extend('force', asked.params, { cursor = cursor })
    ask.request(asked.method, params, function(result, problem)
      shelf.problem = problem
      if not result then
        shelf.stale = true -- the next round asks again
        return done()
      end
      vim.list_extend(rows, result[asked.of] or {})
      pages = pages + 1
      local next_cursor = type(result.next_cursor) == 'string' and result.next_cursor or nil
      if next_cursor and pages < shelf.pages then
        return page(next_cursor)
      end
      shelf.rows, shelf.cursor = rows, next_cursor
      self.changed()
      done()
    end)
  end
  page(nil)
end

--- Asks for the outline and for what is open and no longer right.
---@param done? fun()
function Feed:refresh(done)
  if self.busy and vim.uv.now() - self.began < LOST then
    self.again = true
    return
  end
  self.busy, self.began, self.round = true, vim.uv.now(), self.round + 1
  local round = self.round
  ask.request('workspace/outline', nil, function(outline, problem)
    if round ~= self.round then
      return -- it was given up, and another one asked
    end
    self.problem = problem
    if problem then
      self.failed()
    end
    self.outline = outline or self.outline
    if outline then
      self:describe_all(outline)
    end
    self.changed()
    local wanted = {}
    for key in pairs(outline and self.open or {}) do
      if self.asked[key] and (not self.shelves[key] or self.shelves[key].stale) then
        wanted[#wanted + 1] = key
      end
    end
    each(wanted, function(key, go)
      self:fill(key, go)
    end, function()
      if round ~= self.round then
        return
      end
      self.busy = false
      if self.again then
        self.again = false
        return self:refresh(done)
      end
      if done then
        done()
      end
    end)
  end)
end

--- How the shelves of the outline are filled. What a call made stands below the call, the rest below its turn.
---@param outline artifact_sidecar.Outline
function Feed:describe_all(outline)
  local limit = options.get().page
  for _, turn in ipairs(outline.turns) do
    local own = turn.artifacts
    for _, call in ipairs(turn.calls) do
      own = own - call.artifacts
      local params = { turn_id = turn.turn_id, tool_call_id = call.tool_call_id, limit = limit }
      self:describe(M.key(turn.turn_id, call.tool_call_id), 'artifact/list', params, 'artifacts')
    end
    self.asked[M.key(turn.turn_id)] = nil
    if own > 0 then
      local params = { turn_id = turn.turn_id, tool_call_id = '', limit = limit }
      self:describe(M.key(turn.turn_id), 'artifact/list', params, 'artifacts')
    end
  end
  self:describe(M.OTHER, 'artifact/list', { turn_id = '', limit = limit }, 'artifacts')
end

return M
