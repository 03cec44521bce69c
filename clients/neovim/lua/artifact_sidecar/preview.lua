-- Shows an artifact as a reader would see it: its citations as links; what is no text, as a card.

local ask = require('artifact_sidecar.ask')
local client = require('artifact_sidecar.client')
local linked = require('artifact_sidecar.linked')
local look = require('artifact_sidecar.look')
local opening = require('artifact_sidecar.opening')

local M = {}

local LARGEST = 2 * 1024 * 1024 -- bytes of a text that is shown whole

---@param lines string[]
---@param shape { title: string, footer?: string, filetype?: string, wrap?: boolean }
---@return integer bufnr, integer win
local function float(lines, shape)
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  if shape.filetype == 'markdown' then
    linked.up(bufnr)
  end
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].bufhidden = 'wipe'
  local widest = 40
  lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
  for _, line in ipairs(lines) do
    widest = math.max(widest, vim.fn.strdisplaywidth(line) + 3)
  end
  local width = math.min(widest, 96, math.max(20, vim.o.columns - 8))
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / (width - 1)))
  end
  height = math.max(1, math.min(height, vim.o.lines - 6))
  local win = vim.api.nvim_open_win(bufnr, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - height) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = height,
    style = 'minimal',
    border = 'rounded',
    title = ' ' .. shape.title .. ' ',
    title_pos = 'center',
    footer = shape.footer and (' ' .. shape.footer .. ' ') or ' q closes ',
    footer_pos = 'right',
  })
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  vim.wo[win].breakindent = true
  vim.wo[win].statuscolumn = ' '
  vim.wo[win].conceallevel = 2
  vim.wo[win].concealcursor = 'nvc'
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, '<Cmd>close<CR>', { buffer = bufnr, nowait = true })
  end
  if shape.filetype then
    vim.bo[bufnr].filetype = shape.filetype
    pcall(vim.treesitter.start, bufnr)
  end
  return bufnr, win
end

--- The text of what was opened, and what is wrong when there is none.
---@param opened artifact_sidecar.Opened
---@param done fun(text: string?, problem: string?)
local function text_of(opened, done)
  if not vim.startswith(opened.uri, 'file:') then
    return ask.request('workspace/textDocumentContent', { uri = opened.uri }, function(result, problem)
      done(result and result.text, problem)
    end)
  end
  local file = io.open(vim.uri_to_fname(opened.uri), 'rb')
  local text = file and file:read(LARGEST + 1)
  if file then
    file:close()
  end
  if text and #text > LARGEST then
    return done(nil, ('it is larger than %s; open it instead'):format(look.size(LARGEST)))
  end
  done(text or '', not file and 'it cannot be read' or nil)
end

--- The text with its citations as links; as it is where the daemon reads no citations.
---@param text string
---@param mime string
---@param done fun(text: string)
function M.cited(text, mime, done)
  ask.request('citations/replace', { text = text, mime = mime }, function(result)
    done(result and result.text or text)
  end)
end

---@param path string
---@param version integer?
function M.open(path, version)
  opening.locate(path, version, function(opened)
    if not opened.text then
      return M.card(path, opened)
    end
    text_of(opened, function(text, problem)
      if not text then
        return client.tell(problem or 'there is no text', vim.log.levels.WARN)
      end
      M.cited(text, opened.mime, function(cited)
        local lines = vim.split(cited, '\r?\n', { trimempty = true })
        local title = opened.name .. (version and ('  v%d'):format(version) or '')
        local name = vim.uri_to_fname(opened.uri:gsub('%?.*$', ''))
        float(lines, {
          title = title,
          footer = 'q closes · gx follows a link',
          filetype = vim.filetype.match({ filename = name, contents = lines }),
        })
      end)
    end)
  end)
end

--- A card of what cannot be shown as text, and the way to the program that shows it.
---@param path string
---@param opened artifact_sidecar.Opened
function M.card(path, opened)
  ask.request('artifact/resolve', { paths = { path } }, ask.or_tell(function(result)
    local artifact = (result.results[1] or {}).artifact or {}
    local file = vim.startswith(opened.uri, 'file:') and vim.uri_to_fname(opened.uri) or opened.uri
    local facts = {
      { 'type', opened.mime },
      { 'size', look.size(artifact.size_bytes) },
      { 'turn', artifact.turn_id },
      { 'made by', artifact.tool_id },
      { 'version', artifact.version and tostring(artifact.version) },
      { 'source', artifact.sid and tostring(artifact.sid) },
      { 'about', artifact.description and look.line(artifact.description) },
      { 'path', path },
      { 'file', file },
    }
    local lines = {}
    for _, fact in ipairs(facts) do
      if fact[2] and fact[2] ~= '' then
        lines[#lines + 1] = (' %-9s %s'):format(fact[1], fact[2])
      end
    end
    local bufnr = float(lines, { title = opened.name, footer = '<CR> shows it in its own program · q closes' })
    local space = vim.api.nvim_create_namespace('artifact_sidecar_card')
    for at = 0, #lines - 1 do
      vim.api.nvim_buf_set_extmark(bufnr, space, at, 0, { end_col = 10, hl_group = look.group('Detail') })
    end
    for _, key in ipairs({ '<CR>', 'gx' }) do
      vim.keymap.set('n', key, function()
        M.show_outside(file)
      end, { buffer = bufnr, nowait = true })
    end
  end))
end

---@param target string A file or a URL.
function M.show_outside(target)
  local _, problem = vim.ui.open(target)
  if problem then
    client.tell(problem, vim.log.levels.WARN)
  end
end

--- A window beside the document at hand that shows it with its citations as links, and follows what is written.
function M.beside()
  local source = vim.api.nvim_get_current_buf()
  local filetype = vim.bo[source].filetype
  local bufnr = vim.api.nvim_create_buf(false, true)
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.api.nvim_buf_set_name(bufnr, ('artifact-sidecar://preview/%d/%d'):format(source, bufnr))
  local asked = 0
  local function update()
    asked = asked + 1
    local this = asked
    local text = table.concat(vim.api.nvim_buf_get_lines(source, 0, -1, false), '\n')
    local mime = filetype == 'html' and 'text/html' or filetype == 'json' and 'application/json' or 'text/markdown'
    M.cited(text, mime, function(cited)
      if this == asked and vim.api.nvim_buf_is_valid(bufnr) then
        vim.bo[bufnr].modifiable = true
        vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, vim.split(cited, '\r?\n'))
        vim.bo[bufnr].modifiable = false
        if filetype == 'markdown' then
          linked.up(bufnr)
        end
      end
    end)
  end
  local win = vim.api.nvim_open_win(bufnr, false, { split = 'right', win = 0 })
  vim.bo[bufnr].filetype = filetype
  pcall(vim.treesitter.start, bufnr, filetype)
  vim.wo[win].conceallevel = 2
  vim.wo[win].wrap = true
  vim.wo[win].linebreak = true
  local group = vim.api.nvim_create_augroup('artifact_sidecar_preview_' .. bufnr, {})
  vim.api.nvim_create_autocmd({ 'TextChanged', 'InsertLeave', 'BufWritePost' }, {
    group = group,
    buffer = source,
    callback = update,
  })
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = bufnr,
    callback = function()
      vim.api.nvim_del_augroup_by_id(group)
    end,
  })
  client.listen('preview_' .. bufnr, function(method)
    if not vim.api.nvim_buf_is_valid(bufnr) then
      return client.listen('preview_' .. bufnr, nil)
    end
    if method == 'sources/added' then
      vim.schedule(update)
    end
  end)
  update()
end

return M
