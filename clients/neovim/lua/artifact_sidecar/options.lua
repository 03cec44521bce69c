-- What the user chose in `vim.g.artifact_sidecar`, over what holds when nothing was chosen.

---@class artifact_sidecar.Options
---@field command? string|string[] How to start the daemon's command; found by itself unless given.
---@field python? string The Python whose `-m sidecar` is tried before PATH.
---@field out_dir? string The workspace; found by itself unless given.
---@field args string[] Further options of `artifact-sidecar connect`.
---@field filetypes string[] The documents that get links, hover and diagnostics.
---@field tree { width: integer, side: 'left'|'right' }
---@field page integer How many rows of a call or turn are shown before "more".
---@field icons table<string, string> What stands before a row, by kind.

---@type artifact_sidecar.Options
local defaults = {
  args = {},
  filetypes = { 'markdown', 'html', 'text', 'json', 'csv', 'xml', 'svg', 'yaml', 'rst', 'tex', 'typst' },
  tree = { width = 56, side = 'left' },
  page = 1000,
  icons = { open = '▾', closed = '▸', artifact = '•', display = '◦', absent = '○', version = '↺', more = '…' },
}

-- Those that have no default: they are found.
local found = { 'command', 'python', 'out_dir' }

local M = {}

---@param name string
---@return boolean
function M.is_one(name)
  return defaults[name] ~= nil or vim.list_contains(found, name)
end

---@return artifact_sidecar.Options
function M.get()
  local chosen = vim.g.artifact_sidecar
  return vim.tbl_deep_extend('force', defaults, type(chosen) == 'table' and chosen or {})
end

return M
