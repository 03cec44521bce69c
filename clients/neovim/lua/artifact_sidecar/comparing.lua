-- How the windows of a comparison look, and that the documents in them look as before once it has ended.

local M = {}

local group = vim.api.nvim_create_augroup('artifact_sidecar_comparing', {})

---@type table<string, boolean> The bars above the windows that were compared.
local bars = {}
---@type table<integer, table<string, string>> How a document looked before, by its buffer.
local before = {}

--- Neovim shows a buffer again with the options of the window that it was last in, also when that was a comparison.
local function undress()
  local options = before[vim.api.nvim_get_current_buf()]
  if options and bars[vim.wo[0][0].winbar] and not vim.wo.diff then
    for name, value in pairs(options) do
      vim.wo[0][0][name] = value
    end
  end
end

--- Makes the current window one side of a comparison.
---@param bar string
function M.dress(bar)
  local bufnr, here = vim.api.nvim_get_current_buf(), vim.wo[0][0]
  if not (before[bufnr] and bars[here.winbar]) then
    before[bufnr] = { winbar = here.winbar, foldcolumn = here.foldcolumn, signcolumn = here.signcolumn }
  end
  bars[bar] = true
  vim.cmd.diffthis()
  here.winbar, here.foldcolumn, here.signcolumn = bar, '0', 'no'
  vim.api.nvim_clear_autocmds({ group = group, buffer = bufnr })
  vim.api.nvim_create_autocmd('BufWinEnter', { group = group, buffer = bufnr, callback = undress })
end

return M
