-- The sources as a buffer, `artifact-sidecar://sources`, with a filter; and as a picker.

local ask = require('artifact_sidecar.ask')
local client = require('artifact_sidecar.client')
local look = require('artifact_sidecar.look')
local opening = require('artifact_sidecar.opening')
local views = require('artifact_sidecar.views')

local M = {}

M.uri = 'artifact-sidecar://sources'

local space = vim.api.nvim_create_namespace('artifact_sidecar_sources')
local known = {} ---@type table[]
local shown = {} ---@type table[]
local filter = ''
local problem ---@type string?

---@param value any
---@return string
local function text(value)
  return type(value) == 'string' and look.line(value) or ''
end

---@param source table
---@return string
local function title(source)
  for _, field in ipairs({ 'title', 'physical_path', 'url', 'artifact_path' }) do
    if text(source[field]) ~= '' then
      return text(source[field])
    end
  end
  return text(source.source_type)
end

---@param source table
---@return string
local function place(source)
  for _, field in ipairs({ 'domain', 'url', 'mime' }) do
    if text(source[field]) ~= '' then
      return text(source[field])
    end
  end
  return ''
end

---@return integer?
local function buffer()
  local bufnr = vim.fn.bufnr('^' .. M.uri .. '$')
  return bufnr ~= -1 and vim.api.nvim_buf_is_loaded(bufnr) and bufnr or nil
end

local function draw()
  local bufnr = buffer()
  if not bufnr then
    return
  end
  local wanted = filter:lower()
  shown = vim.tbl_filter(function(source)
    local all = table.concat({ title(source), text(source.url), place(source) }, '\n'):lower()
    return wanted == '' or all:find(wanted, 1, true) ~= nil
  end, known)
  local width = #tostring(#known > 0 and known[#known].sid or 1)
  local rows = {} ---@type artifact_sidecar.Row[]
  for at, source in ipairs(shown) do
    local number = (' %' .. width .. 'd  '):format(source.sid)
    rows[at] = {
      text = number .. title(source),
      marks = { { 0, #number, look.group('Number') } },
      detail = { { '  ' .. place(source) .. ' ', look.group('Detail') } },
    }
  end
  if #rows == 0 then
    local words = problem or (#known == 0 and 'There is no source yet.' or 'No source has "' .. filter .. '" in it.')
    rows[1] = { text = ' ' .. words, marks = { { 0, -1, look.group(problem and 'Warning' or 'Detail') } } }
  end
  local wide = vim.fn.win_findbuf(bufnr)[1]
  look.paint(bufnr, space, rows, wide and vim.api.nvim_win_get_width(wide))
  local said = filter == '' and look.count(#known, 'source') or ('%d of %d · %s'):format(#shown, #known, filter)
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local bar, dim = ' %%#%s#Sources%%*  %%#%s#%s%%*%%=%%#%s#g? keys %%*', look.group('Detail')
    vim.wo[win].winbar = bar:format(look.group('Turn'), dim, (said:gsub('%%', '%%%%')), dim)
  end
end

function M.refresh()
  ask.request('sources/list', nil, function(result, refused)
    problem = refused
    known = result and result.rows or known
    draw()
  end)
end

---@param words string
function M.filter(words)
  filter = words
  draw()
end

---@return table?
local function source_here()
  return shown[vim.api.nvim_win_get_cursor(0)[1]]
end

--- A web source opens in the browser, a file in a window.
---@param source table
function M.show(source)
  if text(source.url) ~= '' then
    require('artifact_sidecar.preview').show_outside(source.url)
  elseif text(source.artifact_path) ~= '' then
    opening.open(source.artifact_path)
  else
    client.tell('source ' .. source.sid .. ' has neither an address nor a file')
  end
end

---@param act fun(source: table)
---@return fun()
local function on_source(act)
  return function()
    local source = source_here()
    if source then
      act(source)
    end
  end
end

local keys = {
  { '<CR>', 'open: a page in the browser, a file here', on_source(M.show) },
  { 'p', 'preview a file; for a page, what is known of it', on_source(function(source)
    if text(source.artifact_path) ~= '' then
      require('artifact_sidecar.preview').open(source.artifact_path)
    else
      local lines = { title(source), text(source.url), '', text(source.text) }
      vim.lsp.util.open_floating_preview(lines, 'markdown', { border = 'rounded', wrap = true, max_width = 80 })
    end
  end) },
  { 'y', 'copy the address or the path', on_source(function(source)
    local url = text(source.url)
    opening.copy(url ~= '' and url or text(source.artifact_path), url ~= '' and 'the address' or 'the path')
  end) },
  { 'c', 'copy the citation', on_source(function(source)
    ask.command('artifact-sidecar.cite', { sids = { source.sid } }, ask.or_tell(function(cited)
      opening.copy(cited.text, 'the citation')
    end))
  end) },
  { 'f', 'show only those with some words in them', function()
    vim.ui.input({ prompt = 'Sources with: ', default = filter }, function(words)
      M.filter(words or filter)
    end)
  end },
  { 'F', 'show all of them', function()
    M.filter('')
  end },
  { 'R', 'ask for everything again', M.refresh },
  { 'q', 'close the list', function()
    if #vim.api.nvim_tabpage_list_wins(0) > 1 then
      vim.api.nvim_win_close(0, false)
    else
      vim.cmd.enew()
    end
  end },
}

---@param bufnr integer
function M.fill(bufnr)
  vim.bo[bufnr].buftype = 'nofile'
  vim.bo[bufnr].swapfile = false
  vim.bo[bufnr].bufhidden = 'hide'
  vim.bo[bufnr].buflisted = false
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = 'artifact-sidecar-sources'
  for _, key in ipairs(keys) do
    vim.keymap.set('n', key[1], key[3], { buffer = bufnr, nowait = true, silent = true, desc = key[2] })
  end
  vim.keymap.set('n', 'g?', function()
    views.help(keys)
  end, { buffer = bufnr, desc = 'what the keys do' })
  client.listen('sources', function(method, params)
    local lost = method == 'notice/posted' or method == 'restarted'
    if buffer() and (lost or method == 'sources/added' and params.rows) then
      vim.schedule(M.refresh)
    end
  end)
  M.refresh()
end

--- Shows the list below, or goes to it.
function M.open()
  local bufnr = buffer()
  local win = bufnr and vim.fn.bufwinid(bufnr) or -1
  if win ~= -1 then
    vim.api.nvim_set_current_win(win)
  else
    vim.cmd('botright 12split')
    vim.api.nvim_win_set_buf(0, vim.fn.bufadd(M.uri))
  end
  vim.wo.number = false
  vim.wo.relativenumber = false
  vim.wo.signcolumn = 'no'
  vim.wo.wrap = false
  vim.wo.list = false
  vim.wo.cursorline = true
  if bufnr then
    M.refresh()
  end
  draw()
end

function M.pick()
  ask.request('sources/list', nil, ask.or_tell(function(result)
    if #result.rows == 0 then
      return client.tell('there is no source yet')
    end
    vim.ui.select(result.rows, {
      prompt = 'Sources',
      kind = 'artifact-sidecar-source',
      format_item = function(source)
        return ('%4d  %s  %s'):format(source.sid, title(source), place(source))
      end,
    }, function(source)
      if source then
        M.show(source)
      end
    end)
  end))
end

return M
