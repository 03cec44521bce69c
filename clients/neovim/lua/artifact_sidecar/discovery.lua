-- Finds the command that talks to the daemon, and the workspace that it is to serve; says what it did not find.

local options = require('artifact_sidecar.options')

local M = {}

M.minimum = '0.1.0'

---@class artifact_sidecar.Command
---@field argv string[]
---@field from string Where it was found, for people.
---@field version string

---@class artifact_sidecar.Candidate
---@field argv string[]
---@field from string
---@field chosen boolean Whether somebody named it; then nothing else is tried in its place.

---@type artifact_sidecar.Command?
local found
---@type (fun(command: artifact_sidecar.Command?, problem: string?))[]?
local waiting

--- A program with blanks in its path is one word when it exists, else the words of a command line.
---@param written string|string[]
---@return string[]
local function words(written)
  if type(written) == 'table' then
    return written
  end
  local program = vim.fs.normalize(written)
  return vim.fn.executable(program) == 1 and { program } or vim.split(vim.trim(written), '%s+')
end

---@return artifact_sidecar.Candidate[]
local function candidates()
  local env, chosen = vim.env.ARTIFACT_SIDECAR_PROGRAM, options.get()
  if env and env ~= '' then
    return { { argv = words(env), from = 'the variable ARTIFACT_SIDECAR_PROGRAM', chosen = true } }
  end
  if chosen.command and #chosen.command > 0 then
    return { { argv = words(chosen.command), from = "the option 'command'", chosen = true } }
  end
  local list = {} ---@type artifact_sidecar.Candidate[]
  if chosen.python then
    local argv = { vim.fs.normalize(chosen.python), '-m', 'sidecar' }
    list[#list + 1] = { argv = argv, from = "the option 'python'", chosen = true }
    return list
  end
  local environment = vim.env.VIRTUAL_ENV
  if environment and environment ~= '' then
    local argv = { vim.fs.joinpath(environment, 'bin', 'python'), '-m', 'sidecar' }
    list[#list + 1] = { argv = argv, from = 'the active Python environment', chosen = false }
  end
  list[#list + 1] = { argv = { 'artifact-sidecar' }, from = 'PATH', chosen = false }
  return list
end

--- Asks a candidate for its version; a program that is no sidecar says something else, or nothing.
---@param candidate artifact_sidecar.Candidate
---@param done fun(version: string?, problem: string?)
local function check(candidate, done)
  local argv = vim.list_extend(vim.list_slice(candidate.argv), { '--version' })
  if vim.fn.executable(argv[1]) ~= 1 then
    local named = argv[1]:find('/', 1, true)
    return done(nil, (named and '%s is no program' or '%s is not on PATH'):format(argv[1]))
  end
  local started, problem = pcall(vim.system, argv, { text = true, timeout = 20000 }, vim.schedule_wrap(function(result)
    local version = (result.stdout or ''):match('^artifact%-sidecar (%d[%w.+-]*)')
    local numbers = version and vim.version.parse(version, { strict = false })
    if not numbers then
      done(nil, ('`%s` is no artifact-sidecar'):format(table.concat(argv, ' ')))
    elseif vim.version.lt(numbers, M.minimum) then
      done(nil, ('artifact-sidecar %s is older than %s'):format(version, M.minimum))
    else
      done(version)
    end
  end))
  if not started then
    done(nil, tostring(problem))
  end
end

---@param list artifact_sidecar.Candidate[]
---@param done fun(command: artifact_sidecar.Command?, problem: string?)
local function first(list, done, said)
  local candidate = list[1]
  if not candidate then
    return done(nil, said)
  end
  check(candidate, function(version, problem)
    if version then
      return done({ argv = candidate.argv, from = candidate.from, version = version })
    end
    local words_of_it = candidate.from == 'PATH' and problem or ('%s (from %s)'):format(problem, candidate.from)
    first(vim.list_slice(list, 2), done, said and said .. '; ' .. words_of_it or words_of_it)
  end)
end

--- The command, found once and remembered; a failure is not, so that it can be mended without a restart.
---@param done fun(command: artifact_sidecar.Command?, problem: string?)
function M.command(done)
  if found then
    return done(found)
  end
  if waiting then
    waiting[#waiting + 1] = done
    return
  end
  waiting = { done }
  first(candidates(), function(command, problem)
    found = command
    local told = waiting or {}
    waiting = nil
    for _, tell in ipairs(told) do
      tell(command, problem)
    end
  end)
end

function M.forget()
  found = nil
end

---@param folder string
---@return boolean
local function is_workspace(folder)
  return vim.uv.fs_stat(vim.fs.joinpath(folder, 'timeline.json')) ~= nil
end

--- OUT_DIR, and where its name comes from: the environment, the option, or a folder above that looks like one.
---@param bufnr? integer
---@return string? out_dir, string from
function M.out_dir(bufnr)
  local named = {
    { vim.env.OUT_DIR, 'the variable OUT_DIR' },
    { options.get().out_dir, "the option 'out_dir'" },
  }
  for _, choice in ipairs(named) do
    local folder, from = choice[1], choice[2]
    if folder and folder ~= '' then
      local path = vim.uv.fs_realpath(vim.fs.normalize(folder))
      return path, path and from or ('%s names %s, which is not there'):format(from, folder)
    end
  end
  local starts = { vim.fn.getcwd() }
  if bufnr and vim.bo[bufnr].buftype == '' and vim.api.nvim_buf_get_name(bufnr) ~= '' then
    table.insert(starts, 1, vim.fs.dirname(vim.api.nvim_buf_get_name(bufnr)))
  end
  for _, start in ipairs(starts) do
    local folder = start
    while folder do
      for _, place in ipairs({ folder, vim.fs.joinpath(folder, 'out') }) do
        if is_workspace(place) then
          return vim.uv.fs_realpath(place), 'timeline.json in ' .. place
        end
      end
      local above = vim.fs.dirname(folder)
      folder = above ~= folder and above or nil
    end
  end
  return nil, "neither the variable OUT_DIR nor the option 'out_dir' names one, and no folder here has a timeline.json"
end

return M
