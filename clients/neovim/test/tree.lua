local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, go_to, has, same = support.eventually, support.go_to, support.has, support.same

---@return string
local function text()
  return table.concat(support.lines(), '\n')
end

support.run({
  { 'the tree shows turns, newest first, with what the newest one made', function()
    vim.cmd('Artifacts tree')
    same(vim.api.nvim_buf_get_name(0), 'artifact-sidecar://tree')
    go_to('write_tools.write_pdf')
    go_to('summary.pdf')
    local newest, second, first = go_to('Now the outlook'), go_to('Give me a page'), go_to('How did our sales go?')
    assert(newest < second and second < first, 'newest first')
    has(support.detail(newest), 'open')
    has(support.detail(first), 'turn_1')
    assert(not text():find('sales.csv', 1, true), 'what is closed is not asked for')
    same(vim.bo.modifiable, false)
  end },

  { 'a closed turn opens, and closes again, and its attachment stands below it', function()
    vim.cmd('Artifacts tree')
    go_to('How did our sales go?')
    support.type('<CR>')
    go_to('exec_tools.run')
    go_to('targets.txt')
    go_to('exec_tools.run')
    support.type('<Tab>')
    go_to('sales.csv')
    go_to('sales.png')
    support.type('P')
    has(vim.api.nvim_get_current_line(), 'exec_tools.run')
    go_to('exec_tools.run')
    support.type('<CR>')
    eventually('the call is closed', function()
      return not text():find('sales.csv', 1, true)
    end)
  end },

  { 'a file that lands shows up by itself, and the cursor stays where it was', function()
    vim.cmd('Artifacts tree')
    go_to('summary.pdf')
    support.write('turn_3/files/outlook.md', '# Outlook\n')
    go_to('Now the outlook')
    eventually('the turn has one file', function()
      return support.detail(vim.api.nvim_win_get_cursor(0)[1]):find('  1 ', 1, true)
    end)
    support.type('<CR>')
    go_to('outlook.md')
    support.write('turn_3/files/an_earlier_name.md', '# Earlier\n')
    eventually('the second file', function()
      return text():find('an_earlier_name.md', 1, true)
    end)
    has(vim.api.nvim_get_current_line(), 'outlook.md')
  end },

  { '<CR> opens the file, with the client attached, and leaves the tree', function()
    vim.cmd('Artifacts tree')
    local tree = vim.api.nvim_get_current_win()
    go_to('outlook.md')
    support.type('<CR>')
    eventually('the file', function()
      return vim.api.nvim_buf_get_name(0):find('outlook.md', 1, true)
    end)
    assert(vim.api.nvim_get_current_win() ~= tree)
    same(support.lines(), { '# Outlook' })
    support.attached()
  end },

  { 'o opens at the side', function()
    vim.cmd('Artifacts tree')
    go_to('outlook.md')
    local before = #vim.api.nvim_tabpage_list_wins(0)
    support.type('o')
    eventually('one more window', function()
      return #vim.api.nvim_tabpage_list_wins(0) == before + 1
    end)
  end },

  { 'y copies the path, gl a link', function()
    vim.cmd('Artifacts tree')
    go_to('outlook.md')
    support.type('y')
    eventually('it was said', function()
      return support.messages[1]
    end)
    local path = vim.fn.getreg('"')
    has(support.messages[1], path)
    same(support.ask('artifact/resolve', { paths = { path } }).results[1].found, true)
    go_to('summary.pdf')
    support.type('gl')
    eventually('a link', function()
      return support.messages[2]
    end)
    has(support.messages[2], 'a link that works until')
    has(vim.fn.getreg('"'), 'summary.pdf')
  end },

  { 'a file that was deleted is shown as away, and r brings it back', function()
    vim.cmd('Artifacts tree')
    local file = vim.fs.joinpath(support.out_dir, 'turn_3/files/outlook.md')
    os.remove(file)
    local line = eventually('it is away', function()
      local at = go_to('outlook.md')
      return support.detail(at):find('not here', 1, true) and at
    end)
    vim.api.nvim_win_set_cursor(0, { line, 0 })
    support.type('r')
    eventually('the file is back', function()
      return vim.uv.fs_stat(file)
    end)
    eventually('and the tree says so', function()
      return not support.detail(go_to('outlook.md')):find('not here', 1, true)
    end)
  end },

  { 'what belongs to no turn stands below the others', function()
    vim.cmd('Artifacts tree')
    go_to('Other files')
    support.type('<CR>')
    go_to('notes.txt')
  end },

  { 'a page of a large turn is shown, and more of it on demand', function()
    vim.g.artifact_sidecar = vim.tbl_extend('force', vim.g.artifact_sidecar, { page = 5 })
    for number = 1, 12 do
      support.write(('turn_3/files/many/%02d.txt'):format(number), 'n')
    end
    vim.cmd('Artifacts tree')
    local line = eventually('there is more', function()
      for at, content in ipairs(support.lines()) do
        if content:find('… more', 1, true) then
          return at
        end
      end
    end)
    vim.api.nvim_win_set_cursor(0, { line, 0 })
    support.type('<CR>')
    go_to('08.txt')
    assert(not text():find('12.txt', 1, true))
  end },

  { 'g? says what the keys do, and q closes', function()
    vim.cmd('Artifacts tree')
    support.type('g?')
    local _, help = support.float()
    has(help, 'compare with the version before')
    support.type('q')
    has(vim.api.nvim_buf_get_name(0), 'artifact-sidecar://tree')
    support.type('q')
    assert(not vim.api.nvim_buf_get_name(0):find('artifact-sidecar://tree', 1, true))
  end },
})
