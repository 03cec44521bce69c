local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, go_to, has, same = support.eventually, support.go_to, support.has, support.same

local function open_report()
  vim.cmd('Artifacts tree')
  go_to('How did our sales go?')
  if not table.concat(support.lines(), '\n'):find('write_tools.patch', 1, true) then
    support.type('<CR>')
  end
  go_to('write_tools.patch')
  if not table.concat(support.lines(), '\n'):find('report.md', 1, true) then
    support.type('<CR>')
  end
  return go_to('report.md')
end

local function forget_report()
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(bufnr):find('report.md', 1, true) then
      vim.cmd.bwipeout({ bufnr, bang = true })
    end
  end
end

support.run({
  { 'an artifact with two versions shows them, newest first', function()
    has(support.detail(open_report()), 'v2')
    support.type('<Tab>')
    local first, second = go_to('v1'), go_to('v2')
    assert(second < first)
    has(support.detail(second), 'latest')
  end },

  { 'an old version opens as a read-only document', function()
    open_report()
    go_to('v1')
    support.type('<CR>')
    eventually('the old text', function()
      return table.concat(support.lines(), '\n'):find('Prices are *expected* to fall.', 1, true)
    end)
    has(vim.api.nvim_buf_get_name(0), 'artifact-sidecar:///')
    same({ vim.bo.modifiable, vim.bo.readonly, vim.bo.buftype, vim.bo.filetype }, { false, true, 'nofile', 'markdown' })
    local name = vim.api.nvim_buf_get_name(0)
    vim.cmd.bwipeout({ bang = true })
    vim.cmd.edit({ args = { name }, magic = { file = false } })
    has(table.concat(support.lines(), '\n'), 'Prices are')
  end },

  { 'd compares with the version before', function()
    open_report()
    support.type('d')
    eventually('a tab with two windows', function()
      return vim.fn.tabpagenr('$') == 2 and #vim.api.nvim_tabpage_list_wins(0) == 2
    end)
    local wins = vim.api.nvim_tabpage_list_wins(0)
    same({ vim.wo[wins[1]].diff, vim.wo[wins[2]].diff }, { true, true })
    has(vim.wo[wins[1]].winbar, 'v1')
    has(vim.wo[wins[2]].winbar, 'v2')
    has(table.concat(support.lines(vim.api.nvim_win_get_buf(wins[1])), '\n'), 'Prices are')
    has(table.concat(support.lines(vim.api.nvim_win_get_buf(wins[2])), '\n'), 'A dry spring')
    same(vim.bo[vim.api.nvim_win_get_buf(wins[2])].buftype, '')
  end },

  { 'after a comparison the document looks as it does without one', function()
    forget_report()
    vim.wo.signcolumn = 'auto'
    local row = open_report()
    support.type('d')
    eventually('a tab with two windows', function()
      return vim.fn.tabpagenr('$') == 2 and #vim.api.nvim_tabpage_list_wins(0) == 2
    end)
    vim.cmd.tabclose()
    vim.api.nvim_win_set_cursor(0, { row, 0 })
    support.type('<CR>')
    eventually('the report', function()
      return vim.endswith(vim.api.nvim_buf_get_name(0), '/report.md')
    end)
    same({ vim.wo.winbar, vim.wo.signcolumn, vim.wo.foldcolumn, vim.wo.diff }, { '', 'auto', '0', false })
    same({ vim.go.winbar, vim.go.signcolumn }, { '', 'auto' })
  end },

  { 'a file that has a swap file is compared and opened, read-only and with a word', function()
    forget_report()
    local report = vim.fs.joinpath(support.out_dir, 'turn_1/files/report.md')
    -- Neovim itself goes past the swap file of one that runs; that of one that was killed it asks about.
    vim.fn.system({ vim.v.progpath, '--clean', '--headless', report, '-c', 'normal! Ochanged', '-c', 'preserve',
      '-c', 'call v:lua.vim.uv.kill(getpid(), 9)' })
    for _, keys in ipairs({ 'd', '<CR>' }) do
      vim.cmd('silent! tabonly!')
      forget_report()
      support.messages = {}
      open_report()
      support.type(keys)
      has(eventually('a word', function()
        return support.messages[1]
      end), 'report.md is opened read-only')
      eventually('the report', function()
        return vim.endswith(vim.api.nvim_buf_get_name(0), '/report.md')
      end)
      same({ #support.messages, vim.bo.readonly }, { 1, true })
    end
    vim.cmd('silent! tabonly!')
    forget_report()
    for _, left in ipairs(vim.fn.glob(vim.fn.stdpath('state') .. '/swap/*report.md.sw?', true, true)) do
      vim.fn.delete(left)
    end
  end },

  { 'a first version has nothing to be compared with', function()
    open_report()
    go_to('v1')
    support.type('d')
    eventually('it is said', function()
      return support.messages[1]
    end)
    has(support.messages[1], 'first version')
  end },

  { 'a version that is not there says so in its place', function()
    vim.cmd.edit({ args = { 'artifact-sidecar:///turn_1/files/report.md?version=7' }, magic = { file = false } })
    has(support.lines()[1], 'This version cannot be shown')
  end },
})
