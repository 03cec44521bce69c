local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, go_to, has, same = support.eventually, support.go_to, support.has, support.same

local asked ---@type { items: table[], opts: table, choose: fun(item: table?) }?
vim.ui.select = function(items, opts, choose)
  asked = { items = items, opts = opts, choose = choose }
end

---@param wanted string
local function choose(wanted)
  local given = eventually('a picker', function()
    return asked
  end)
  asked = nil
  for _, item in ipairs(given.items) do
    if given.opts.format_item(item):find(wanted, 1, true) then
      given.choose(item)
      return given
    end
  end
  error('nothing to pick has ' .. wanted)
end

support.run({
  { ':Artifacts picks one and opens it', function()
    vim.cmd('Artifacts')
    local given = choose('sales.csv')
    same(given.opts.kind, 'artifact-sidecar')
    eventually('the file', function()
      return support.lines()[1] == 'quarter,units,revenue,remark'
    end)
  end },

  { ':Artifacts completes paths, and opens the one that is given', function()
    same(vim.fn.getcompletion('Artifacts tr', 'cmdline'), { 'tree' })
    local all = vim.fn.getcompletion('Artifacts ', 'cmdline')
    local report
    for _, path in ipairs(all) do
      report = path:find('report.md', 1, true) and path or report
    end
    same(vim.fn.getcompletion('Artifacts ' .. report:sub(1, -4), 'cmdline'), { report })
    vim.cmd('Artifacts ' .. report)
    eventually('the file', function()
      return vim.startswith(support.lines()[1], '# Coffee sales')
    end)
  end },

  { 'a path that leads nowhere is refused in words', function()
    vim.cmd('Artifacts turn_1/files/none.md')
    eventually('a refusal', function()
      return support.messages[1]
    end)
    has(support.messages[1], 'artifact-sidecar: ')
    assert(not support.messages[1]:find('stack traceback', 1, true))
  end },

  { ':Sources lists what can be cited, and filters', function()
    vim.cmd('Sources')
    go_to('Coffee prices reach a ten-year high')
    go_to('report.md')
    require('artifact_sidecar.sources').filter('HARVEST')
    same(#support.lines(), 1)
    has(support.lines()[1], 'Harvest report')
    has(vim.wo.winbar, '1 of ')
    support.type('F')
    go_to('Coffee prices')
  end },

  { 'a page opens in the browser, a file here', function()
    local opened
    vim.ui.open = function(target)
      opened = target
    end
    vim.cmd('Sources')
    go_to('Harvest report')
    support.type('<CR>')
    same(opened, 'https://example.com/harvest')
    support.type('y')
    same(vim.fn.getreg('"'), 'https://example.com/harvest')
    go_to('targets.txt')
    support.type('<CR>')
    eventually('the file', function()
      return support.lines()[1] == '400 units in the last quarter'
    end)
  end },

  { 'c copies the citation as the daemon writes it', function()
    vim.cmd('Sources')
    go_to('Harvest report')
    support.type('c')
    eventually('it is copied', function()
      return support.messages[1]
    end)
    local token = vim.fn.getreg('"')
    same(support.ask('citations/extract', { text = token }).sids, { 2 })
  end },

  { ':Sources pick offers the same', function()
    vim.cmd('Sources pick')
    choose('targets.txt')
    eventually('the file', function()
      return support.lines()[1] == '400 units in the last quarter'
    end)
  end },

  { 'a source that is found shows up by itself', function()
    vim.cmd('Sources')
    go_to('Harvest report')
    support.write('turn_3/files/found.md', '# Found\n')
    go_to('found.md')
  end },
})
