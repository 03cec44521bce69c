-- What the daemon wrote into its log, and where Neovim's own client wrote what it met.

local client = require('artifact_sidecar.client')

local M = {}

---@param lines string[]
local function show(lines)
  vim.cmd('botright 15new')
  local bufnr = vim.api.nvim_get_current_buf()
  vim.bo[bufnr].buftype = 'nofile'
  vim.bo[bufnr].bufhidden = 'wipe'
  vim.bo[bufnr].swapfile = false
  vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = 'artifact-sidecar-log'
  vim.api.nvim_win_set_cursor(0, { #lines, 0 })
  vim.keymap.set('n', 'q', '<Cmd>close<CR>', { buffer = bufnr, nowait = true })
end

---@return string
local function own_log()
  local lsp = vim.lsp.log or require('vim.lsp.log')
  return 'Neovim\'s client writes into ' .. (lsp.get_filename and lsp.get_filename() or vim.lsp.get_log_path())
end

function M.open()
  client.locate(vim.api.nvim_get_current_buf(), function(out_dir, problem)
    local located = client.located()
    if not (out_dir and located) then
      return show({ problem or 'not configured', own_log() })
    end
    local argv = client.console('logs', '--lines', '500')
    vim.system(argv, { text = true, timeout = 20000 }, vim.schedule_wrap(function(result)
      local text = vim.trim((result.stdout or '') .. (result.code ~= 0 and result.stderr or ''))
      show(vim.list_extend(vim.split(text, '\n'), { '', own_log() }))
    end))
  end)
end

return M
