-- What the tests share: they run inside a real Neovim, wait for conditions, and end it with 1 when one of them fails.

local M = {}

local CEILING = tonumber(vim.env.SIDECAR_TEST_CEILING or 60000) -- milliseconds; all waits are for conditions

M.out_dir = vim.uv.fs_realpath(vim.env.OUT_DIR or '.')
M.modern = vim.fn.has('nvim-0.11') == 1
M.messages = {} ---@type string[]

vim.o.columns = 160
vim.o.lines = 50

--- What is told to a person, kept instead of shown.
vim.notify = function(text, level)
  M.messages[#M.messages + 1] = text
  if level == vim.log.levels.ERROR then
    M.failed_outside = (M.failed_outside or '') .. '\n' .. text
  end
end

--- The plugin and its tests define no globals.
setmetatable(_G, {
  __newindex = function(all, name, value)
    if debug.getinfo(2, 'S').source:find('clients/neovim', 1, true) then
      error('a global: ' .. name, 2)
    end
    rawset(all, name, value)
  end,
})

---@generic T
---@param what string
---@param look fun(): T
---@return T
function M.eventually(what, look)
  local found
  vim.wait(CEILING, function()
    found = look()
    return found and true or false
  end, 10)
  if not found then
    error(('was not so within %d s: %s\nmessages: %s\nbuffer:\n%s'):format(
      CEILING / 1000, what, vim.inspect(M.messages), table.concat(M.lines(), '\n')), 2)
  end
  return found
end

---@param actual any
---@param expected any
---@param what? string
function M.same(actual, expected, what)
  if not vim.deep_equal(actual, expected) then
    error(('%s: %s is not %s'):format(what or 'differs', vim.inspect(actual), vim.inspect(expected)), 2)
  end
end

---@param text string
---@param part string
function M.has(text, part)
  if not text:find(part, 1, true) then
    error(('%q is not in %q'):format(part, text), 2)
  end
end

---@param bufnr? integer
---@return string[]
function M.lines(bufnr)
  return vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false)
end

---@param keys string
function M.type(keys)
  vim.api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
end

--- Waits for the row that has this text, and goes there.
---@param text string
---@return integer
function M.go_to(text)
  local line = M.eventually('a row with ' .. text, function()
    for at, content in ipairs(M.lines()) do
      if content:find(text, 1, true) then
        return at
      end
    end
  end)
  vim.api.nvim_win_set_cursor(0, { line, 0 })
  return line
end

--- Puts the cursor on the first place of a text in the buffer.
---@param text string
function M.put_on(text)
  for at, content in ipairs(M.lines()) do
    local from = content:find(text, 1, true)
    if from then
      return vim.api.nvim_win_set_cursor(0, { at, from - 1 })
    end
  end
  error('no ' .. text .. ' in the buffer', 2)
end

---@param row integer
---@return string
function M.detail(row)
  local space = vim.api.nvim_get_namespaces().artifact_sidecar_tree
  local marks = vim.api.nvim_buf_get_extmarks(0, space, { row - 1, 0 }, { row - 1, -1 }, { details = true })
  local words = {}
  for _, mark in ipairs(marks) do
    for _, chunk in ipairs(mark[4].virt_text or {}) do
      words[#words + 1] = chunk[1]
    end
  end
  return table.concat(words)
end

--- A file of OUT_DIR, whole at once as a careful program writes it.
---@param path string
---@param text string
function M.write(path, text)
  local target = vim.fs.joinpath(M.out_dir, path)
  vim.fn.mkdir(vim.fs.dirname(target), 'p')
  local file = assert(io.open(target, 'wb'))
  file:write(text)
  file:close()
end

---@param path string
function M.edit(path)
  vim.cmd.edit(vim.fn.fnameescape(vim.fs.joinpath(M.out_dir, path)))
end

---@return vim.lsp.Client
function M.attached()
  return M.eventually('the client is attached', function()
    local client = vim.lsp.get_clients({ bufnr = 0, name = 'artifact_sidecar' })[1]
    return client and client.initialized and client or nil
  end)
end

---@param method string
---@param params? table
---@return table
function M.ask(method, params)
  local result, problem = require('artifact_sidecar.ask').wait(CEILING, method, params)
  return assert(result, problem)
end

--- The window that floats, and its lines.
---@return integer win, string text
function M.float()
  local win = M.eventually('a floating window', function()
    for _, candidate in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(candidate).relative ~= '' then
        return candidate
      end
    end
  end)
  return win, table.concat(M.lines(vim.api.nvim_win_get_buf(win)), '\n')
end

--- Runs the tests of a file in order, and ends Neovim.
---@param tests { [1]: string, [2]: fun() }[]
function M.run(tests)
  local failures = 0
  for _, test in ipairs(tests) do
    M.messages = {}
    vim.cmd('silent! tabonly! | silent! only!')
    local ok, problem = xpcall(test[2], debug.traceback)
    if ok and M.failed_outside then
      ok, problem = false, M.failed_outside
    end
    M.failed_outside = nil
    io.stdout:write(('%s %s\n'):format(ok and 'ok  ' or 'FAIL', test[1]))
    if not ok then
      failures = failures + 1
      io.stdout:write(tostring(problem) .. '\n')
    end
  end
  io.stdout:write(('%d of %d failed\n'):format(failures, #tests))
  io.stdout:flush()
  vim.cmd(failures == 0 and 'qall!' or 'cquit 1')
end

return M
