-- What the commands of the plugin do.

local ask = require('artifact_sidecar.ask')
local client = require('artifact_sidecar.client')
local look = require('artifact_sidecar.look')
local opening = require('artifact_sidecar.opening')

local M = {}

local PICKED = 10000 -- artifacts that a picker is given at most
local COMPLETED = 100 -- paths that a completion offers at most

---@type table<string, fun()>
local parts = {
  tree = function()
    require('artifact_sidecar.tree').open()
  end,
  preview = function()
    require('artifact_sidecar.preview').beside()
  end,
}

---@param artifact table
---@return string
local function label(artifact)
  local name = artifact.physical_path or artifact.artifact_path
  local about = artifact.description and look.line(artifact.description) or artifact.mime
  return ('%s  %s  %s'):format(name, look.size(artifact.size_bytes), about)
end

---@param done fun(artifacts: table[])
local function all(done)
  local found = {}
  local function page(cursor)
    ask.request('artifact/list', { cursor = cursor }, ask.or_tell(function(result)
      vim.list_extend(found, result.artifacts)
      local more = type(result.next_cursor) == 'string' and #found < PICKED
      if more then
        page(result.next_cursor)
      else
        done(found)
      end
    end))
  end
  page(nil)
end

function M.pick()
  all(function(artifacts)
    if #artifacts == 0 then
      return client.tell('nothing was made yet')
    end
    local shown = { prompt = 'Artifacts', kind = 'artifact-sidecar', format_item = label }
    vim.ui.select(artifacts, shown, function(artifact)
      if artifact then
        opening.open(artifact.artifact_path)
      end
    end)
  end)
end

---@param given { args: string }
function M.artifacts(given)
  local asked = vim.trim(given.args)
  if asked == '' then
    M.pick()
  elseif parts[asked] then
    parts[asked]()
  else
    opening.open(asked)
  end
end

---@param given { args: string }
function M.sources(given)
  local sources = require('artifact_sidecar.sources')
  if vim.trim(given.args) == 'pick' then
    sources.pick()
  else
    sources.open()
  end
end

---@param lead string
---@return string[]
function M.complete(lead)
  local offered = vim.tbl_filter(function(name)
    return vim.startswith(name, lead)
  end, vim.tbl_keys(parts))
  table.sort(offered)
  local params = { limit = COMPLETED, prefix = lead ~= '' and lead or nil }
  local result = ask.wait(3000, 'artifact/list', params)
  for _, artifact in ipairs(result and result.artifacts or {}) do
    offered[#offered + 1] = artifact.artifact_path
  end
  return offered
end

return M
