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
