local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, has, same = support.eventually, support.has, support.same
local discovery = require('artifact_sidecar.discovery')

---@return artifact_sidecar.Command? found, string? problem
local function command()
  local done, found, problem = false, nil, nil
  discovery.forget()
  discovery.command(function(...)
    done = true
    found, problem = ...
  end)
  eventually('an answer', function()
    return done
  end)
  return found, problem
end

---@param options table
local function choose(options)
  vim.g.artifact_sidecar = options
end

local good = vim.g.artifact_sidecar.command

support.run({
  { 'outside of every workspace nothing is said, until somebody asks', function()
    vim.env.OUT_DIR = nil
    choose({ command = good })
    vim.cmd.edit(vim.fs.joinpath(vim.env.SIDECAR_TEST_ELSEWHERE, 'readme.md'))
    vim.bo.filetype = 'markdown'
    assert(command(), 'the time that a program takes to answer')
    same(support.messages, {})
    same(vim.lsp.get_clients(), {})
    vim.cmd('Artifacts')
    eventually('it is said', function()
      return support.messages[1]
    end)
    has(support.messages[1], 'no workspace')
    vim.cmd('Artifacts tree')
    eventually('the tree says it too', function()
      return table.concat(support.lines(), '\n'):find('no workspace', 1, true)
    end)
    same(require('artifact_sidecar').statusline(), '')
  end },

  { 'a workspace is known by its timeline, from any folder below', function()
    vim.env.OUT_DIR = nil
    choose({ command = good })
    local elsewhere = vim.uv.fs_realpath(vim.env.SIDECAR_TEST_ELSEWHERE)
    local out = vim.fs.joinpath(elsewhere, 'project', 'out')
    vim.fn.mkdir(vim.fs.joinpath(elsewhere, 'project', 'src'), 'p')
    vim.fn.mkdir(out, 'p')
    vim.fn.writefile({ '{}' }, vim.fs.joinpath(out, 'timeline.json'))
    vim.cmd.edit(vim.fs.joinpath(elsewhere, 'project', 'src', 'notes.txt'))
    same((discovery.out_dir(0)), out)
    choose({ command = good, out_dir = elsewhere })
    same((discovery.out_dir(0)), elsewhere)
    vim.env.OUT_DIR = out
    same((discovery.out_dir(0)), out)
    vim.env.OUT_DIR = '/nowhere/at/all'
    same((discovery.out_dir(0)), nil)
    vim.env.OUT_DIR = nil
  end },

  { 'the command is looked for in the environment, the options, Python and PATH, in this order', function()
    vim.env.ARTIFACT_SIDECAR_PROGRAM = table.concat(good, ' ')
    choose({ command = '/nowhere' })
    has(assert(command()).from, 'ARTIFACT_SIDECAR_PROGRAM')
    vim.env.ARTIFACT_SIDECAR_PROGRAM = nil
    choose({ command = good })
    has(assert(command()).from, "'command'")
    choose({ python = good[1] })
    local found = assert(command())
    has(found.from, "'python'")
    assert(found.version:match('^%d'))
    choose({})
    vim.env.VIRTUAL_ENV = vim.fs.dirname(vim.fs.dirname(good[1]))
    has(assert(command()).from, 'active Python environment')
    vim.env.VIRTUAL_ENV = nil
    vim.env.PATH = vim.env.SIDECAR_TEST_ELSEWHERE .. '/bin'
    has(assert(command()).from, 'PATH')
  end },

  { 'what was named and is wrong is told, and nothing else is taken in its place', function()
    vim.env.PATH = vim.env.SIDECAR_TEST_ELSEWHERE .. '/bin'
    choose({ command = '/nowhere/artifact-sidecar' })
    local found, problem = command()
    same(found, nil)
    has(problem, '/nowhere/artifact-sidecar is no program')
    choose({ command = { 'echo', 'artifact-sidecar 0.0.1' } })
    vim.env.PATH = '/usr/bin:/bin'
    has(select(2, command()), 'older than')
    choose({ command = { 'echo', 'hello' } })
    has(select(2, command()), 'is no artifact-sidecar')
  end },

  { 'a workspace without a command is told of once, however many documents are opened', function()
    vim.env.OUT_DIR = support.out_dir
    choose({ command = '/nowhere/artifact-sidecar' })
    discovery.forget()
    for _, name in ipairs({ 'report.md', 'sales.csv', 'other.md' }) do
      support.edit('turn_1/files/' .. name)
    end
    eventually('a message', function()
      return support.messages[1]
    end)
    command()
    same(#support.messages, 1)
    has(support.messages[1], 'not configured')
    has(support.messages[1], 'checkhealth')
  end },

  { 'when it is mended, it works without starting Neovim again', function()
    vim.env.OUT_DIR = support.out_dir
    choose({ command = '/nowhere/artifact-sidecar' })
    discovery.forget()
    vim.cmd('Artifacts tree')
    support.type('R')
    eventually('the tree says what is wrong', function()
      return table.concat(support.lines(), '\n'):find('not configured', 1, true)
    end)
    choose({ command = good, args = vim.json.decode(vim.env.SIDECAR_TEST_OPTIONS).args })
    support.type('R')
    support.go_to('How did our sales go?')
  end },

  { ':checkhealth says what is missing, and what to do', function()
    vim.env.OUT_DIR = nil
    choose({ command = '/nowhere', colour = 'red' })
    vim.cmd('checkhealth artifact_sidecar')
    local text = table.concat(support.lines(), '\n')
    has(text, '/nowhere is no program')
    choose({})
    vim.env.VIRTUAL_ENV = nil
    vim.env.PATH = '/usr/bin:/bin'
    has(select(2, command()), 'artifact-sidecar is not on PATH')
    has(text, 'there is no option colour')
    has(text, 'Install artifact-sidecar')
  end },
})
