-- The tree as a buffer: `artifact-sidecar://tree`, live for as long as it is there.

local client = require('artifact_sidecar.client')
local feeds = require('artifact_sidecar.feed')
local look = require('artifact_sidecar.look')
local nodes = require('artifact_sidecar.nodes')
local opening = require('artifact_sidecar.opening')
local options = require('artifact_sidecar.options')
local views = require('artifact_sidecar.views')

local M = {}

M.uri = 'artifact-sidecar://tree'

local DEBOUNCE = 120 -- milliseconds; a burst of files is shown once
local RETRY = 1000 -- milliseconds until a daemon that went is asked again

local space = vim.api.nvim_create_namespace('artifact_sidecar_tree')
local feed ---@type artifact_sidecar.Feed?
local shown = {} ---@type artifact_sidecar.Node[]
local timer ---@type uv.uv_timer_t?
local drawing = false

---@return integer?
local function buffer()
  local bufnr = vim.fn.bufnr('^' .. M.uri .. '$')
  return bufnr ~= -1 and vim.api.nvim_buf_is_loaded(bufnr) and bufnr or nil
end

--- Which row each window is at, by its id, so that what is inserted above does not move it.
---@param bufnr integer
---@return table<integer, string>
local function places(bufnr)
  local at = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local node = shown[vim.api.nvim_win_get_cursor(win)[1]]
    at[win] = node and node.id or nil
  end
  return at
end

local function draw()
  drawing = false
  local bufnr = buffer()
  if not (bufnr and feed) then
    return
  end
  local at = places(bufnr)
  shown = nodes.rows(feed)
  local win = vim.fn.win_findbuf(bufnr)[1]
  look.paint(bufnr, space, shown, win and vim.api.nvim_win_get_width(win))
  local lines = {}
  for line, node in ipairs(shown) do
    lines[node.id] = line
  end
  for win, id in pairs(at) do
    if lines[id] then
      vim.api.nvim_win_set_cursor(win, { lines[id], vim.api.nvim_win_get_cursor(win)[2] })
    end
  end
end

local function draw_soon()
  if not drawing then
    drawing = true
    vim.schedule(draw)
  end
end

--- What was made last is open when the tree is opened for the first time.
---@param made artifact_sidecar.Feed
local function open_newest(made)
  local turns = made.outline and made.outline.turns or {}
  for at = #turns, 1, -1 do
    if turns[at].artifacts > 0 then
      made.open[feeds.key(turns[at].turn_id)] = true
      for _, call in ipairs(turns[at].calls) do
        made.open[feeds.key(turns[at].turn_id, call.tool_call_id)] = call.artifacts > 0 or nil
      end
      return made:refresh()
    end
  end
end

---@param after integer Milliseconds.
local function refresh_soon(after)
  timer = timer or assert(vim.uv.new_timer())
  timer:start(after, 0, vim.schedule_wrap(function()
    if feed and buffer() then
      feed:refresh()
    end
  end))
end

--- A client that runs will have a daemon again; without one there is nothing to ask.
local function try_again()
  if feed and client.current() then
    feed:spoil()
    refresh_soon(RETRY)
  end
end

---@param method string
---@param params table
local function heard(method, params)
  if not (feed and buffer()) then
    return
  end
  if method == 'artifacts/changed' then
    feed:spoil_artifacts(params.artifacts)
  elseif method == 'sources/added' then
    feed:spoil_sources(params.rows)
  elseif method == 'restarted' or method == 'notice/posted' and params.notice.code == 'events_dropped' then
    feed:spoil()
  elseif method ~= 'timeline/appended' then
    return
  end
  refresh_soon(DEBOUNCE)
end

---@return artifact_sidecar.Node?
local function node_here()
  return shown[vim.api.nvim_win_get_cursor(0)[1]]
end

--- Runs something for the artifact at the cursor, or the version of one.
---@param act fun(path: string, version: integer?)
---@return fun()
local function on_artifact(act)
  return function()
    local node = node_here()
    if node and node.artifact then
      act(node.artifact.artifact_path, node.version)
    end
  end
end

local function toggle()
  local node = node_here()
  if node and node.key and feed and node.kind ~= 'more' then
    feed:set(node.key, not feed.open[node.key])
  end
end

local function enter()
  local node = node_here()
  if not (node and feed) then
    return
  elseif node.kind == 'artifact' or node.kind == 'version' then
    opening.open(node.artifact.artifact_path, node.version)
  elseif node.kind == 'more' then
    feed:more(node.key)
  else
    toggle()
  end
end

local function to_parent()
  local node = node_here()
  for line, candidate in ipairs(shown) do
    if node and candidate.id == node.parent then
      return vim.api.nvim_win_set_cursor(0, { line, 0 })
    end
  end
end

function M.refresh()
  if feed then
    feed:spoil()
    feed:refresh()
  end
end

---@type { [1]: string, [2]: string, [3]: fun() }[]
local keys = {
  { '<CR>', 'open: the artifact, the version, or what is below', enter },
  { 'o', 'open in a window at the side', on_artifact(function(path, version)
    opening.open(path, version, 'side')
  end) },
  { 'p', 'preview, with the citations as links', on_artifact(function(path, version)
    require('artifact_sidecar.preview').open(path, version)
  end) },
  { 'd', 'compare with the version before', on_artifact(opening.diff) },
  { 'r', 'bring the file back', on_artifact(opening.bring_back) },
  { 'y', 'copy the path', on_artifact(function(path)
    opening.copy(path, 'the path')
  end) },
  { 'gl', 'copy a link for the download', on_artifact(opening.link) },
  { '<Tab>', 'open or close what is below', toggle },
  { 'P', 'go to the row above it in the tree', to_parent },
  { 'R', 'ask for everything again', M.refresh },
  { 'q', 'close the tree', function()
    if #vim.api.nvim_tabpage_list_wins(0) > 1 then
      vim.api.nvim_win_close(0, false)
    else
      vim.cmd.enew()
    end
  end },
}

---@param win integer
local function dress(win)
  local set = function(name, value)
    vim.api.nvim_set_option_value(name, value, { win = win, scope = 'local' })
  end
  set('number', false)
  set('relativenumber', false)
  set('signcolumn', 'no')
  set('foldcolumn', '0')
  set('wrap', false)
  set('list', false)
  set('spell', false)
  set('cursorline', true)
  set('winfixwidth', true)
  set('statuscolumn', '')
  set('winbar', ("%%#%s# Artifacts%%*%%=%%#%s#g? keys %%*"):format(look.group('Turn'), look.group('Detail')))
end

--- Makes the buffer the tree; called when it is read, by `:Artifacts tree` or by its name.
---@param bufnr integer
function M.fill(bufnr)
  vim.bo[bufnr].buftype = 'nofile'
  vim.bo[bufnr].swapfile = false
  vim.bo[bufnr].bufhidden = 'hide'
  vim.bo[bufnr].buflisted = false
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].filetype = 'artifact-sidecar-tree'
  for _, key in ipairs(keys) do
    vim.keymap.set('n', key[1], key[3], { buffer = bufnr, nowait = key[1] ~= 'gl', silent = true, desc = key[2] })
  end
  vim.keymap.set('n', 'g?', function()
    views.help(keys)
  end, { buffer = bufnr, desc = 'what the keys do' })
  vim.keymap.set('n', '<2-LeftMouse>', enter, { buffer = bufnr })
  vim.api.nvim_create_autocmd('WinResized', {
    group = vim.api.nvim_create_augroup('artifact_sidecar_tree', {}),
    callback = draw_soon,
  })
  feed = feeds.new(draw_soon, try_again)
  client.listen('tree', heard)
  draw_soon()
  feed:refresh(function()
    open_newest(feed)
  end)
end

--- Shows the tree at the side, or goes to it.
function M.open()
  local bufnr = buffer()
  local win = bufnr and vim.fn.win_findbuf(bufnr)[1]
  for _, candidate in ipairs(bufnr and vim.fn.win_findbuf(bufnr) or {}) do
    win = vim.api.nvim_win_get_tabpage(candidate) == vim.api.nvim_get_current_tabpage() and candidate or win
  end
  if win and vim.api.nvim_win_get_tabpage(win) == vim.api.nvim_get_current_tabpage() then
    vim.api.nvim_set_current_win(win)
  else
    local tree = options.get().tree
    local width = math.min(tree.width, math.max(30, math.floor(vim.o.columns * 0.45)))
    vim.cmd(('%s vertical %dsplit'):format(tree.side == 'right' and 'botright' or 'topleft', width))
    vim.api.nvim_win_set_buf(0, vim.fn.bufadd(M.uri))
    vim.cmd('normal! 0')
  end
  dress(0)
  if bufnr then
    M.refresh()
  end
end

return M
