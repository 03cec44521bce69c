-- What can be done with an artifact: open it or a version of it, compare two, bring it back, copy its path or a link.

local ask = require('artifact_sidecar.ask')
local client = require('artifact_sidecar.client')
local comparing = require('artifact_sidecar.comparing')
local documents = require('artifact_sidecar.documents')
local look = require('artifact_sidecar.look')

local M = {}

--- Shows a buffer in this window. A file with a swap file is opened read-only unless the user's own settings say what
--- to do: Neovim would ask, and it cannot ask from here.
---@param bufnr integer
---@return boolean shown
local function show_here(bufnr)
  local swapped = false
  local watch = vim.api.nvim_create_autocmd('SwapExists', {
    callback = function()
      if vim.v.swapchoice == '' then
        swapped = true
        vim.v.swapchoice = 'o'
      end
    end,
  })
  local ok, problem = pcall(vim.cmd, ('buffer %d'):format(bufnr)) -- nvim_win_set_buf would let nobody answer
  vim.api.nvim_del_autocmd(watch)
  local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
  if not ok then
    client.tell(('%s cannot be opened: %s'):format(name, problem), vim.log.levels.WARN)
  elseif swapped then
    local words = '%s is opened read-only: its swap file says that it is being edited elsewhere, or was not saved'
    client.tell(words:format(name), vim.log.levels.WARN)
  end
  return ok
end

---@class artifact_sidecar.Opened
---@field uri string
---@field name string
---@field mime string
---@field text boolean
---@field read_only boolean
---@field physical_path? string
---@field artifact_path? string
---@field version? integer

---@param path string
---@param version integer?
---@param done fun(opened: artifact_sidecar.Opened)
function M.locate(path, version, done)
  ask.command('artifact-sidecar.open', { path = path, version = version }, ask.or_tell(done))
end

--- A window for documents: the one that was left for ours, else another one, else a new one beside it.
---@return integer
local function window()
  local function fits(win)
    local bufnr = vim.api.nvim_win_get_buf(win)
    return vim.api.nvim_win_get_config(win).relative == ''
      and not vim.startswith(vim.bo[bufnr].filetype, 'artifact-sidecar')
      and not vim.wo[win].winfixbuf
      and not vim.wo[win].previewwindow
  end
  local here, before = vim.api.nvim_get_current_win(), vim.fn.win_getid(vim.fn.winnr('#'))
  local all = vim.list_extend({ here, before }, vim.api.nvim_tabpage_list_wins(0))
  for _, win in ipairs(all) do
    if win ~= 0 and fits(win) then
      return win
    end
  end
  local on_the_left = require('artifact_sidecar.options').get().tree.side == 'left'
  return vim.api.nvim_open_win(0, false, { split = on_the_left and 'right' or 'left', win = here })
end

---@param opened artifact_sidecar.Opened
---@param where? 'here'|'side'|'tab'
function M.show(opened, where)
  local bufnr = documents.buffer(opened.uri)
  vim.api.nvim_set_current_win(window())
  if where == 'side' then
    vim.cmd('rightbelow vertical split')
  end
  vim.bo[bufnr].buflisted = true
  vim.cmd.normal({ "m'", bang = true })
  show_here(bufnr)
end

---@param path string
---@param version integer?
---@param where? 'here'|'side'
function M.open(path, version, where)
  M.locate(path, version, function(opened)
    if opened.text then
      M.show(opened, where)
    else
      require('artifact_sidecar.preview').card(path, opened)
    end
  end)
end

--- Two versions side by side in a tab of their own: the older one at the left.
---@param path string
---@param version integer? The newer of the two; the latest unless named.
function M.diff(path, version)
  ask.request('artifact/versions', { path = path }, ask.or_tell(function(result)
    local numbers = vim.tbl_map(function(row)
      return row.version
    end, result.versions)
    local latest = numbers[#numbers]
    local at = version or latest
    local older
    for _, number in ipairs(numbers) do
      older = number < at and number or older
    end
    if not older then
      return client.tell('it is the first version; there is nothing to compare it with')
    end
    M.locate(path, older, function(left)
      M.locate(path, at ~= latest and at or nil, function(right)
        if not (left.text and right.text) then
          return client.tell('only texts can be compared; ' .. right.name .. ' is ' .. right.mime)
        end
        M.compare(left, ('v%d'):format(older), right, ('v%d'):format(at))
      end)
    end)
  end))
end

---@param left artifact_sidecar.Opened
---@param left_label string
---@param right artifact_sidecar.Opened
---@param right_label string
function M.compare(left, left_label, right, right_label)
  vim.cmd('tab split')
  local sides = { { left, left_label }, { right, right_label } }
  for at, side in ipairs(sides) do
    if at == 2 then
      vim.cmd('rightbelow vertical split')
    end
    local bufnr = documents.buffer(side[1].uri)
    if not show_here(bufnr) then
      return vim.cmd.tabclose()
    end
    local name, label = side[1].name:gsub('%%', '%%%%'), side[2]
    vim.wo.winfixbuf = false
    comparing.dress((' %%#%s#%s%%*  %%#%s#%s%%*'):format(look.group('Turn'), name, look.group('Version'), label))
  end
  vim.cmd('normal! gg]c')
end

---@param path string
function M.bring_back(path)
  ask.command('artifact-sidecar.rehost', { paths = { path } }, ask.or_tell(function(result)
    local row, gone = (result.rehosted or {})[1], (result.missing or {})[1]
    if row then
      client.tell('it is there: ' .. (row.physical_path or row.path))
    elseif gone then
      client.tell(('%s could not be brought back: %s'):format(gone.path, gone.reason), vim.log.levels.WARN)
    end
  end))
end

---@param text string
---@param what string
function M.copy(text, what)
  vim.fn.setreg('"', text)
  if vim.fn.has('clipboard') == 1 then
    pcall(vim.fn.setreg, '+', text)
  end
  client.tell('copied ' .. what .. ': ' .. text)
end

---@param path string
function M.link(path)
  ask.request('artifact/link', { path = path }, ask.or_tell(function(result)
    M.copy(result.url, 'a link that works until ' .. look.time(result.expires_at) .. ' UTC')
  end))
end

return M
