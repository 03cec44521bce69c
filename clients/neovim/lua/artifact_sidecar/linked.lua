-- Puts the words of Markdown's links in the place of the links: an address that is only concealed still takes its room
-- when lines are wrapped. Where each one leads stays with it, for gx.

local M = {}

local LINKS = [[
  (inline_link (link_text) @text (link_destination) @address) @whole
  (image (image_description) @text (link_destination) @address) @whole
]]

local space = vim.api.nvim_create_namespace('artifact_sidecar_links')

---@param bufnr integer
---@return { range: integer[], text: string, address: string }[]
local function links(bufnr)
  local ok, parser = pcall(vim.treesitter.get_parser, bufnr, 'markdown')
  if not (ok and parser) then
    return {}
  end
  parser:parse(true)
  local query, found = vim.treesitter.query.parse('markdown_inline', LINKS), {}
  parser:for_each_tree(function(tree, language)
    if language:lang() ~= 'markdown_inline' then
      return
    end
    for _, match in query:iter_matches(tree:root(), bufnr, 0, -1, { all = true }) do
      local link = {}
      for id, nodes in pairs(match) do
        local node = type(nodes) == 'table' and nodes[#nodes] or nodes
        local name = query.captures[id]
        link[name] = name == 'whole' and { node:range() } or vim.treesitter.get_node_text(node, bufnr)
      end
      -- A backslash before a sign is there for Markdown alone.
      local text, address = link.text:gsub('\\(%p)', '%1'):gsub('\n', ' '), link.address:gsub('\\(%p)', '%1')
      found[#found + 1] = { range = link.whole, text = text, address = address:match('^<(.*)>$') or address }
    end
  end)
  table.sort(found, function(a, b)
    return a.range[1] > b.range[1] or a.range[1] == b.range[1] and a.range[2] > b.range[2]
  end)
  return found
end

--- Rewrites a buffer that is only shown. The last link goes first, so that no place moves before it is used.
---@param bufnr integer
function M.up(bufnr)
  local found = links(bufnr)
  vim.bo[bufnr].modifiable = true
  vim.api.nvim_buf_clear_namespace(bufnr, space, 0, -1)
  for _, link in ipairs(found) do
    local row, column, last_row, last_column = unpack(link.range)
    vim.api.nvim_buf_set_text(bufnr, row, column, last_row, last_column, { link.text })
    vim.api.nvim_buf_set_extmark(bufnr, space, row, column, {
      end_col = column + #link.text,
      hl_group = '@markup.link.label',
      url = link.address,
    })
  end
  vim.bo[bufnr].modifiable = false
end

--- Where the links of a buffer lead, in order.
---@param bufnr integer
---@return { text: string, address: string }[]
function M.all(bufnr)
  local found = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(bufnr, space, 0, -1, { details = true })) do
    local row, column, details = mark[2], mark[3], mark[4]
    local text = vim.api.nvim_buf_get_text(bufnr, row, column, details.end_row, details.end_col, {})[1]
    found[#found + 1] = { text = text, address = details.url }
  end
  return found
end

return M
