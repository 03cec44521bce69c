-- Asks the daemon, and says in words what it refused.

local client = require('artifact_sidecar.client')

local M = {}

local modern = vim.fn.has('nvim-0.11') == 1

---@param problem any What came in the place of an answer.
---@return string
function M.words(problem)
  if type(problem) ~= 'table' then
    return tostring(problem)
  end
  local data = type(problem.data) == 'table' and problem.data or {}
  local hint = type(data.hint) == 'string' and ' ' .. data.hint or ''
  return (problem.message or vim.inspect(problem)) .. hint
end

--- An empty Lua table would go out as a list.
---@param params? table
---@return table
local function object(params)
  return (params == nil or next(params) == nil) and vim.empty_dict() or params
end

---@param method string
---@param params table?
---@param done fun(result: table?, problem: string?)
function M.request(method, params, done)
  client.ready(function(asked, problem)
    if not asked then
      return done(nil, problem)
    end
    local function handler(err, result)
      if err then
        done(nil, M.words(err))
      else
        done(result == vim.NIL and {} or result)
      end
    end
    -- Bound to the client and to no document; 0 would be the current one.
    local sent
    if modern then
      sent = asked:request(method, object(params), handler)
    else
      sent = asked.request(method, object(params), handler)
    end
    if not sent then
      done(nil, 'the client has stopped; :ArtifactsRestart starts it again')
    end
  end)
end

---@param name string
---@param argument table
---@param done fun(result: table?, problem: string?)
function M.command(name, argument, done)
  M.request('workspace/executeCommand', { command = name, arguments = { object(argument) } }, done)
end

--- Waits for the answer, for the few things that Neovim itself waits for: completion, and reading a document.
---@param ceiling integer Milliseconds.
---@param method string
---@param params table?
---@return table? result, string? problem
function M.wait(ceiling, method, params)
  local answered, result, problem = false, nil, nil
  M.request(method, params, function(...)
    answered = true
    result, problem = ...
  end)
  vim.wait(ceiling, function()
    return answered
  end, 5)
  if not answered then
    return nil, 'no answer within ' .. ceiling .. ' ms'
  end
  return result, problem
end

--- For what a person asked for: a refusal is shown, an answer is handed on.
---@param done fun(result: table)
---@return fun(result: table?, problem: string?)
function M.or_tell(done)
  return function(result, problem)
    if result then
      done(result)
    else
      client.tell(problem or 'no answer', vim.log.levels.WARN)
    end
  end
end

return M
