-- The views that are buffers of ours, by the name that stands in `artifact-sidecar://<name>`.

local M = {}

---@param view string
---@param bufnr integer
function M.fill(view, bufnr)
  if view == 'tree' then
    require('artifact_sidecar.tree').fill(bufnr)
  elseif view == 'sources' then
    require('artifact_sidecar.sources').fill(bufnr)
  end
end

--- A small window that says what the keys do; any key closes it.
---@param keys { [1]: string, [2]: string }[]
function M.help(keys)
  local look = require('artifact_sidecar.look')
  local rows, width = {}, 0
  for _, key in ipairs(keys) do
    local text = ('  %-7s %s  '):format(key[1], key[2])
    rows[#rows + 1] = { text = text, marks = { { 2, 2 + #key[1], look.group('Key') } } }
    width = math.max(width, vim.fn.strdisplaywidth(text))
  end
  local bufnr = vim.api.nvim_create_buf(false, true)
  look.paint(bufnr, vim.api.nvim_create_namespace('artifact_sidecar_help'), rows)
  local win = vim.api.nvim_open_win(bufnr, true, {
    relative = 'editor',
    row = math.max(0, math.floor((vim.o.lines - #rows) / 2) - 1),
    col = math.max(0, math.floor((vim.o.columns - width) / 2)),
    width = width,
    height = #rows,
    style = 'minimal',
    border = 'rounded',
    title = ' Keys ',
    title_pos = 'center',
  })
  for _, key in ipairs({ 'q', '<Esc>', 'g?', '<CR>' }) do
    vim.keymap.set('n', key, function()
      if vim.api.nvim_win_is_valid(win) then
        vim.api.nvim_win_close(win, true)
      end
    end, { buffer = bufnr, nowait = true })
  end
  vim.bo[bufnr].bufhidden = 'wipe'
end

return M
