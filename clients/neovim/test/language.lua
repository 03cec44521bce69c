local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, has, same = support.eventually, support.has, support.same

--- A document of the open turn with an emoji before everything that is looked at.
---@param text string
local function document(text)
  local path = 'turn_3/files/notes.md'
  support.write(path, text)
  support.edit(path)
  vim.cmd('silent edit!')
  support.attached()
  eventually('the daemon knows the document', function()
    return support.ask('artifact/resolve', { paths = { path } }).results[1].found
  end)
end

--- What the daemon answers for the place of the cursor.
---@param method string
---@return any
local function here(method)
  local client = support.attached()
  local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
  local answers = assert(vim.lsp.buf_request_sync(0, method, params, 60000))
  local answer = assert(answers[client.id], 'an answer')
  assert(not answer.error, vim.inspect(answer.error))
  return answer.result
end

---@param diagnostic vim.Diagnostic
---@return string
local function covered(diagnostic)
  local d = diagnostic
  return table.concat(vim.api.nvim_buf_get_text(0, d.lnum, d.col, d.end_lnum, d.end_col, {}), '\n')
end

support.run({
  { 'hover on a citation is the card of its source, to the very character, after an emoji', function()
    support.edit('turn_1/files/report.md')
    support.attached()
    support.put_on('[[S:4]]')
    vim.lsp.buf.hover()
    local win, text = support.float()
    has(text, 'Exchange rates, monthly means')
    vim.api.nvim_win_close(win, true)
    local at = vim.api.nvim_win_get_cursor(0)
    vim.api.nvim_win_set_cursor(0, { at[1], at[2] + #'[[S:4]]' - 1 })
    has(vim.inspect(here('textDocument/hover')), 'Exchange rates')
    vim.api.nvim_win_set_cursor(0, { at[1], at[2] - 2 })
    same(here('textDocument/hover') or vim.NIL, vim.NIL)
  end },

  { 'what is cited and unknown is marked, and nothing beside it', function()
    support.edit('turn_1/files/report.md')
    support.attached()
    local found = eventually('a diagnostic', function()
      local all = vim.diagnostic.get(0)
      return #all > 0 and all
    end)
    same(vim.tbl_map(covered, found), { '[[S:99]]' })
    has(found[1].message, '99')
  end },

  { 'the definition of a citation is its file, or its page in the browser where there are no links', function()
    local opened
    vim.ui.open = function(target)
      opened = target
    end
    document('# Notes\n\n😀😀 see [[S:6]] and [[S:2]].\n')
    if not support.modern then
      support.put_on('[[S:2]]')
      vim.lsp.buf.definition()
      eventually('the page', function()
        return opened == 'https://example.com/harvest'
      end)
    end
    support.put_on('[[S:6]]')
    vim.lsp.buf.definition()
    eventually('the file', function()
      return support.lines()[1] == '400 units in the last quarter'
    end)
  end },

  { 'gx follows what is linked, where Neovim asks for links', function()
    if not support.modern then
      return
    end
    local opened
    vim.ui.open = function(target)
      opened = target
    end
    document('# Notes\n\n😀😀 see [[S:2]].\n')
    support.put_on('[[S:2]]')
    support.type('gx')
    eventually('the page', function()
      return opened == 'https://example.com/harvest'
    end)
  end },

  { 'completion offers sources by their titles, and edits the right place', function()
    document('# Notes\n\n😀 read [[S:Harv\n')
    vim.api.nvim_win_set_cursor(0, { 3, #'😀 read [[S:Harv' })
    local client = support.attached()
    local params = vim.lsp.util.make_position_params(0, client.offset_encoding)
    -- Behind the last character, where a cursor is while one types: 4 bytes of the emoji are 2 units of UTF-16.
    params.position.character = #'😀 read [[S:Harv' - (client.offset_encoding == 'utf-16' and 2 or 0)
    local answers = assert(vim.lsp.buf_request_sync(0, 'textDocument/completion', params, 60000))
    local result = assert(answers[client.id].result)
    local item
    for _, candidate in ipairs(result.items or result) do
      item = vim.inspect(candidate):find('Harvest report', 1, true) and candidate or item
    end
    assert(item, 'an item for the harvest: ' .. vim.inspect(result))
    vim.lsp.util.apply_text_edits({ item.textEdit }, vim.api.nvim_get_current_buf(), client.offset_encoding)
    has(support.lines()[3], '😀 read ')
    local text = support.lines()[3]
    same(support.ask('citations/extract', { text = text }).sids, { 2 })
    assert(not text:find('Harv', 1, true), text)
    vim.cmd('silent edit!')
  end },

  { 'a code action mends what is marked', function()
    document('# Notes\n\n😀 as [[S:2,99]] says.\n')
    local found = eventually('a diagnostic', function()
      return vim.diagnostic.get(0)[1]
    end)
    vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col + 2 })
    local titles = {}
    vim.lsp.buf.code_action({
      apply = true,
      context = { only = { 'quickfix' }, diagnostics = support.attached() and vim.tbl_map(function(d)
        return d.user_data.lsp
      end, vim.diagnostic.get(0)) },
      filter = function(action)
        titles[#titles + 1] = action.title
        return #titles == 1
      end,
    })
    eventually('the text is mended', function()
      return not table.concat(support.lines(), '\n'):find('[[S:2,99]]', 1, true)
    end)
    vim.cmd('silent edit!')
  end },

  { 'diagnostics follow what is typed', function()
    document('# Notes\n\nnothing yet\n')
    vim.api.nvim_buf_set_lines(0, 2, 3, false, { '🍰 and [[S:77]]' })
    local found = eventually('a diagnostic', function()
      return vim.diagnostic.get(0)[1]
    end)
    same(covered(found), '[[S:77]]')
    vim.api.nvim_buf_set_lines(0, 2, 3, false, { '🍰 and [[S:1]]' })
    eventually('it is gone', function()
      return #vim.diagnostic.get(0) == 0
    end)
    vim.cmd('silent edit!')
  end },

  { 'symbols of the workspace are artifacts', function()
    support.edit('turn_1/files/report.md')
    local client = support.attached()
    local answers = assert(vim.lsp.buf_request_sync(0, 'workspace/symbol', { query = 'sales' }, 60000))
    has(vim.inspect(answers[client.id].result), 'sales.csv')
  end },
})
