-- Neovim's own LSP client, configured for the daemon: it is started once for a workspace, asked, and listened to.

local discovery = require('artifact_sidecar.discovery')
local options = require('artifact_sidecar.options')

local M = {}

M.name = 'artifact_sidecar'

local modern = vim.fn.has('nvim-0.11') == 1
local EVENTS = { 'artifacts/changed', 'sources/added', 'notice/posted', 'timeline/appended' }

---@type table<string, fun(method: string, params: table)> Who wants events, by a name of theirs.
local listeners = {}
---@type table<string, boolean> What was said already, so that no message comes twice.
local said = {}

---@param text string
---@param level? integer
function M.tell(text, level)
  vim.notify('artifact-sidecar: ' .. text, level or vim.log.levels.INFO)
end

---@param text string
local function tell_once(text)
  if not said[text] then
    said[text] = true
    M.tell(text .. ' See :checkhealth artifact_sidecar.', vim.log.levels.WARN)
  end
end

---@param name string
---@param listener fun(method: string, params: table)?
function M.listen(name, listener)
  listeners[name] = listener
end

---@param method string
---@param params table
local function heard(method, params)
  for _, listener in pairs(listeners) do
    local ok, problem = pcall(listener, method, params)
    if not ok then
      vim.schedule(function()
        M.tell(tostring(problem), vim.log.levels.ERROR)
      end)
    end
  end
end

---@param out_dir string
---@param command string[]
---@return string[]
function M.argv(command, out_dir)
  local argv = vim.list_slice(command)
  vim.list_extend(argv, { 'connect', '--role', 'editor', '--out-dir', out_dir })
  return vim.list_extend(argv, options.get().args)
end

--- What `vim.lsp.start` and `vim.lsp.config` take. The command is found before `root_dir` answers.
---@return table
function M.config()
  local handlers = {}
  for _, method in ipairs(EVENTS) do
    handlers[method] = function(_, params)
      heard(method, params or {})
    end
  end
  return {
    name = M.name,
    filetypes = options.get().filetypes,
    root_dir = function(bufnr, on_dir)
      M.locate(bufnr, function(out_dir)
        if out_dir then
          on_dir(out_dir)
        end
      end)
    end,
    cmd = function(dispatchers, config)
      return vim.lsp.rpc.start(M.started_with(config and config.root_dir), dispatchers)
    end,
    init_options = { events = { 'artifacts', 'sources', 'notices', 'timeline' } },
    handlers = handlers,
    on_exit = function()
      vim.schedule(function()
        heard('exit', {})
      end)
    end,
  }
end

---@type { command: artifact_sidecar.Command, out_dir: string }?
local located

---@param out_dir? string
---@return string[]
function M.started_with(out_dir)
  assert(located, 'the command is found before the client starts')
  return M.argv(located.command.argv, out_dir or located.out_dir)
end

--- Finds command and workspace. A document outside of every workspace is none of ours, and nothing is said about it; a
--- workspace that cannot be served is told of, once.
---@param bufnr integer?
---@param done fun(out_dir: string?, problem: string?)
function M.locate(bufnr, done)
  local out_dir, from = discovery.out_dir(bufnr)
  if not out_dir then
    return done(nil, 'no workspace: ' .. from)
  end
  discovery.command(function(command, problem)
    if not command then
      local text = 'not configured: ' .. problem .. '.'
      tell_once(text)
      return done(nil, text)
    end
    located = { command = command, out_dir = out_dir }
    done(out_dir)
  end)
end

--- The client of the document at hand, else any.
---@return vim.lsp.Client?
function M.current()
  local get = vim.lsp.get_clients
  local client = get({ name = M.name, bufnr = 0 })[1] or get({ name = M.name })[1]
  return client and not client:is_stopped() and client or nil
end

---@param out_dir string
---@return table
local function ready_config(out_dir)
  local config = modern and vim.deepcopy(vim.lsp.config[M.name]) or M.config()
  config.root_dir = out_dir
  config.cmd = function(dispatchers)
    return vim.lsp.rpc.start(M.started_with(out_dir), dispatchers)
  end
  return config
end

--- Neovim 0.10: starts or finds the client for a document. From 0.11 on Neovim does that.
---@param bufnr integer
function M.attach(bufnr)
  if vim.bo[bufnr].buftype ~= '' or not vim.list_contains(options.get().filetypes, vim.bo[bufnr].filetype) then
    return
  end
  M.locate(bufnr, function(out_dir)
    if out_dir and vim.api.nvim_buf_is_loaded(bufnr) then
      vim.lsp.start(ready_config(out_dir), { bufnr = bufnr })
    end
  end)
end

---@param client vim.lsp.Client
---@param done fun(client: vim.lsp.Client?, problem: string?)
local function initialized(client, done)
  if client.initialized then
    return done(client)
  end
  -- There is no event for a client without a document.
  local timer = assert(vim.uv.new_timer())
  local deadline = vim.uv.now() + 60000
  timer:start(10, 10, vim.schedule_wrap(function()
    if timer:is_closing() then
      return
    end
    local gone = vim.lsp.get_client_by_id(client.id) == nil
    if client.initialized or gone or vim.uv.now() > deadline then
      timer:close()
      done(client.initialized and client or nil, 'the daemon does not answer; see :ArtifactsLog')
    end
  end))
end

--- The client once it may be asked; it is started, without a document, when none runs.
---@param done fun(client: vim.lsp.Client?, problem: string?)
function M.ready(done)
  local client = M.current()
  if client then
    return initialized(client, done)
  end
  M.locate(vim.api.nvim_get_current_buf(), function(out_dir, problem)
    if not out_dir then
      return done(nil, problem)
    end
    local config = ready_config(out_dir)
    local id = modern and vim.lsp.start(config, { attach = false }) or vim.lsp.start_client(config)
    local started = id and vim.lsp.get_client_by_id(id)
    if not started then
      return done(nil, 'the client did not start; see :ArtifactsLog')
    end
    initialized(started, done)
  end)
end

---@param client vim.lsp.Client
---@param force boolean
local function stop(client, force)
  if modern then
    client:stop(force)
  else
    client.stop(force)
  end
end

--- A command of the console for the workspace. Of the options of `connect` it takes those that say where things lie.
---@param ... string
---@return string[]
function M.console(...)
  assert(located, 'the command is found before it is used')
  local argv = vim.list_extend(vim.list_slice(located.command.argv), { ... })
  vim.list_extend(argv, { '--out-dir', located.out_dir })
  local given = options.get().args
  for at, option in ipairs(given) do
    if option == '--state-dir' or option == '--socket-dir' then
      vim.list_extend(argv, { option, given[at + 1] })
    end
  end
  return argv
end

--- Ends the client, and the daemon if that is asked for, and starts them for the documents that had them.
---@param what { daemon: boolean }
---@param done? fun(client: vim.lsp.Client?, problem: string?)
function M.restart(what, done)
  said = {}
  discovery.forget()
  local buffers, leaving = {}, {} ---@type integer[], vim.lsp.Client[]
  for _, client in ipairs(vim.lsp.get_clients({ name = M.name })) do
    for _, bufnr in ipairs(vim.tbl_keys(client.attached_buffers)) do
      buffers[#buffers + 1] = bufnr
      vim.lsp.buf_detach_client(bufnr, client.id) -- else Neovim goes on asking one that is on its way out
    end
    leaving[#leaving + 1] = client
    stop(client, false)
  end
  local deadline, timer = vim.uv.now() + 3000, assert(vim.uv.new_timer())
  local function again()
    M.ready(function(client, problem)
      if client then
        for _, bufnr in ipairs(buffers) do
          if vim.api.nvim_buf_is_loaded(bufnr) then
            vim.lsp.buf_attach_client(bufnr, client.id)
          end
        end
        M.tell('started again' .. (what.daemon and ', the daemon as well' or ''))
        heard('restarted', {})
      else
        M.tell(problem or 'the client did not start', vim.log.levels.WARN)
      end
      if done then
        done(client, problem)
      end
    end)
  end
  timer:start(0, 20, vim.schedule_wrap(function()
    if timer:is_closing() then
      return
    end
    local left = vim.tbl_filter(function(client)
      return vim.lsp.get_client_by_id(client.id) ~= nil
    end, leaving)
    if #left > 0 and vim.uv.now() < deadline then
      return
    end
    timer:close()
    for _, client in ipairs(left) do
      stop(client, true)
    end
    if what.daemon and located then
      vim.system(M.console('restart'), { text = true, timeout = 60000 }, vim.schedule_wrap(function(result)
        if result.code ~= 0 then
          M.tell('the daemon was not started again: ' .. vim.trim(result.stderr or ''), vim.log.levels.WARN)
        end
        again()
      end))
    else
      again()
    end
  end))
end

--- What is known of command and workspace, for :checkhealth and the log.
---@return { command: artifact_sidecar.Command, out_dir: string }?
function M.located()
  return located
end

return M
