-- How things look: highlight groups that follow the user's colours, sizes and times for people.

local M = {}

-- Linked to groups that every colour scheme has, so that they are right in dark and in light ones.
local links = {
  Turn = 'Title',
  Call = 'Function',
  Name = 'Normal',
  Absent = 'Comment',
  Version = 'Special',
  Number = 'Constant',
  Detail = 'Comment',
  Icon = 'NonText',
  Open = 'DiagnosticOk',
  Warning = 'DiagnosticWarn',
  Key = 'Special',
}

for name, group in pairs(links) do
  vim.api.nvim_set_hl(0, 'ArtifactSidecar' .. name, { link = group, default = true })
end

---@param name string
---@return string
function M.group(name)
  return 'ArtifactSidecar' .. name
end

---@param bytes integer?
---@return string
function M.size(bytes)
  if not bytes then
    return ''
  end
  local number, unit = bytes, 'B'
  for _, larger in ipairs({ 'kB', 'MB', 'GB' }) do
    if number < 1000 then
      break
    end
    number, unit = number / 1000, larger
  end
  return unit == 'B' and ('%d B'):format(number) or ('%.1f %s'):format(number, unit)
end

---@param count integer
---@param one string
---@param many? string
---@return string
function M.count(count, one, many)
  return ('%d %s'):format(count, count == 1 and one or many or one .. 's')
end

--- An ISO 8601 time in UTC as the day and the minute of it.
---@param ts string?
---@return string
function M.time(ts)
  local day, minute = (ts or ''):match('^(%d+-%d+-%d+)T(%d+:%d+)')
  return day and day .. ' ' .. minute or ''
end

--- One line of text, however it was written.
---@param text string?
---@return string
function M.line(text)
  return (vim.trim(text or ''):gsub('%s+', ' '))
end

---@param row artifact_sidecar.Row
---@param width integer
---@return string
local function shortened(row, width)
  local bytes = #row.text
  for _, chunk in ipairs(row.detail or {}) do
    bytes = bytes + #chunk[1]
  end
  if bytes <= width then
    return row.text -- a cell takes a byte at least
  end
  local function room_beside()
    local taken = 0
    for _, chunk in ipairs(row.detail or {}) do
      taken = taken + vim.fn.strdisplaywidth(chunk[1])
    end
    return math.max(12, width - taken)
  end
  if vim.fn.strdisplaywidth(row.text) > room_beside() and row.spare then
    row.detail = vim.list_slice(row.detail, 2)
  end
  local room = room_beside()
  if vim.fn.strdisplaywidth(row.text) <= room then
    return row.text
  end
  local kept = vim.fn.strcharpart(row.text, 0, room - 1)
  while vim.fn.strdisplaywidth(kept) > room - 1 do
    kept = vim.fn.strcharpart(kept, 0, vim.fn.strchars(kept) - 1)
  end
  return kept .. '…'
end

--- Puts rows into a buffer that only we write.
---@class artifact_sidecar.Row
---@field text string
---@field marks { [1]: integer, [2]: integer, [3]: string }[] From byte, to byte (or -1), group.
---@field detail? { [1]: string, [2]: string }[] What stands at the right.
---@field spare? boolean Whether the first detail goes where there is little room.
---@type table<integer, string[]> What every row of a buffer was painted from.
local painted = {}

---@param row artifact_sidecar.Row
---@return string
local function signature(row)
  local parts = { row.text }
  for _, mark in ipairs(row.marks) do
    parts[#parts + 1] = mark[1] .. mark[3]
  end
  for _, chunk in ipairs(row.detail or {}) do
    parts[#parts + 1] = chunk[1] .. chunk[2]
  end
  return table.concat(parts, '\0')
end

---@param bufnr integer
---@param space integer
---@param line integer
---@param row artifact_sidecar.Row
local function decorate(bufnr, space, line, row)
  for _, mark in ipairs(row.marks) do
    local stop = mark[2] == -1 and #row.text or math.min(mark[2], #row.text)
    if stop > mark[1] then
      vim.api.nvim_buf_set_extmark(bufnr, space, line, mark[1], { end_col = stop, hl_group = mark[3] })
    end
  end
  if row.detail and #row.detail > 0 then
    local detail = { virt_text = row.detail, virt_text_pos = 'right_align', hl_mode = 'combine' }
    vim.api.nvim_buf_set_extmark(bufnr, space, line, 0, detail)
  end
end

--- Writes the rows between the first and the last one that changed: ten thousand that stayed cost next to nothing.
---@param bufnr integer
---@param space integer
---@param rows artifact_sidecar.Row[]
---@param width? integer Cells of the window; a text that would run into what stands at its right ends in `…`.
function M.paint(bufnr, space, rows, width)
  local before, now = painted[bufnr], {}
  for at, row in ipairs(rows) do
    row.text = width and shortened(row, width) or row.text
    now[at] = signature(row)
  end
  if not before or #before ~= vim.api.nvim_buf_line_count(bufnr) then
    before = {}
    vim.api.nvim_buf_clear_namespace(bufnr, space, 0, -1)
  end
  local shorter, first, same_after = math.min(#before, #now), 0, 0
  while first < shorter and before[first + 1] == now[first + 1] do
    first = first + 1
  end
  while same_after < shorter - first and before[#before - same_after] == now[#now - same_after] do
    same_after = same_after + 1
  end
  painted[bufnr] = now
  local old_end, lines = #before == 0 and -1 or #before - same_after, {}
  for at = first + 1, #now - same_after do
    lines[#lines + 1] = rows[at].text
  end
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_clear_namespace(bufnr, space, first, old_end)
  vim.api.nvim_buf_set_lines(bufnr, first, old_end, false, lines)
  vim.bo[bufnr].modifiable = false
  vim.bo[bufnr].modified = false
  for at = first + 1, #now - same_after do
    decorate(bufnr, space, at - 1, rows[at])
  end
end

return M
