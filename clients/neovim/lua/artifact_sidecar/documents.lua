-- Documents under our own scheme: a version of the past, read-only, as the daemon gives it; the tree and the sources.

local ask = require('artifact_sidecar.ask')

local M = {}

local CEILING = 20000

--- Neovim takes a name for a URI only with two slashes behind the scheme; an empty authority changes nothing.
---@param uri string
---@return string
function M.name(uri)
  return (uri:gsub('^artifact%-sidecar:/([^/])', 'artifact-sidecar:///%1'))
end

---@param name string
---@return string
local function uri_of(name)
  return (name:gsub('^artifact%-sidecar:///', 'artifact-sidecar:/'))
end

--- The buffer of a document: a file's own, or one that is filled by `read`.
---@param uri string
---@return integer
function M.buffer(uri)
  if vim.startswith(uri, 'file:') then
    return vim.fn.bufadd(vim.uri_to_fname(uri))
  end
  local bufnr = vim.fn.bufadd(M.name(uri))
  vim.b[bufnr].artifact_sidecar_uri = uri
  return bufnr
end

--- BufReadCmd: fills a buffer of ours.
---@param bufnr integer
---@param name string
function M.read(bufnr, name)
  local view = name:match('^artifact%-sidecar://(%l+)$')
  if view then
    return require('artifact_sidecar.views').fill(view, bufnr)
  end
  local uri = vim.b[bufnr].artifact_sidecar_uri or uri_of(name)
  local result, problem = ask.wait(CEILING, 'workspace/textDocumentContent', { uri = uri })
  local text = result and result.text or ('This version cannot be shown: ' .. (problem or 'no answer'))
  local lines = vim.split(text, '\r?\n')
  if #lines > 1 and lines[#lines] == '' then
    lines[#lines] = nil
  end
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
  vim.bo[bufnr].readonly = true
  vim.bo[bufnr].buftype = 'nofile'
  vim.bo[bufnr].swapfile = false
  local filetype = result and vim.filetype.match({ filename = (uri:gsub('%?.*$', '')), buf = bufnr })
  if filetype then
    vim.bo[bufnr].filetype = filetype
  end
end

return M
