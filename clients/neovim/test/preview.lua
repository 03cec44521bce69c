local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, has, same = support.eventually, support.has, support.same
local preview = require('artifact_sidecar.preview')

support.run({
  { 'a preview has links in the place of citations', function()
    preview.open('turn_1/files/report.md')
    local win, text = support.float()
    has(text, 'in the last one Coffee prices reach a ten-year high.')
    local first = require('artifact_sidecar.linked').all(vim.api.nvim_win_get_buf(win))[1]
    same(first, { text = 'Coffee prices reach a ten-year high', address = 'https://example.org/coffee/prices' })
    if support.modern then
      local opened
      vim.ui.open = function(target)
        opened = target
      end
      support.put_on('ten-year')
      support.type('gx')
      same(opened, first.address)
    end
    same(vim.bo[vim.api.nvim_win_get_buf(win)].filetype, 'markdown')
    same(vim.api.nvim_get_current_win(), win)
    support.type('q')
    assert(not vim.api.nvim_win_is_valid(win))
  end },

  { 'an old version has a preview too', function()
    preview.open('turn_1/files/report.md', 1)
    local _, text = support.float()
    has(text, 'expected')
    support.type('q')
  end },

  { 'a picture is shown as a card, and <CR> gives it to its own program', function()
    vim.cmd('Artifacts turn_1/files/charts/sales.png')
    local _, text = support.float()
    has(text, 'image/png')
    has(text, 'exec_tools.run')
    local opened
    vim.ui.open = function(target)
      opened = target
    end
    support.type('<CR>')
    same(opened, vim.fs.joinpath(support.out_dir, 'turn_1/files/charts/sales.png'))
    support.type('q')
  end },

  { ':Artifacts preview follows the document at hand', function()
    support.edit('turn_1/files/report.md')
    vim.cmd('Artifacts preview')
    local wins = vim.api.nvim_tabpage_list_wins(0)
    same(#wins, 2)
    local beside = vim.api.nvim_win_get_buf(wins[2])
    eventually('the links', function()
      return #require('artifact_sidecar.linked').all(beside) > 3
    end)
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { '# Rates [[S:4]]' })
    vim.api.nvim_exec_autocmds('TextChanged', { buffer = 0 })
    eventually('the new link', function()
      return support.lines(beside)[1] == '# Rates Exchange rates, monthly means'
    end)
    vim.cmd('silent! edit!')
  end },
})
