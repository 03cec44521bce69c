local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local has, same = support.has, support.same

local folder = vim.fs.dirname(vim.fs.dirname(vim.env.SIDECAR_TEST_SUPPORT))

--- A copy, because helptags writes beside what it reads.
local function tagged()
  local copy = vim.fn.tempname()
  vim.fn.mkdir(copy .. '/doc', 'p')
  vim.fn.writefile(vim.fn.readfile(folder .. '/doc/artifact-sidecar.txt'), copy .. '/doc/artifact-sidecar.txt')
  vim.cmd.helptags(copy .. '/doc')
  vim.opt.runtimepath:append(copy)
  return copy
end

support.run({
  { 'helptags finds every tag once, and every reference leads somewhere', function()
    local copy = tagged()
    local tags = {}
    for _, line in ipairs(vim.fn.readfile(copy .. '/doc/tags')) do
      tags[line:match('^[^\t]+')] = true
    end
    local lost = {}
    for _, line in ipairs(vim.fn.readfile(copy .. '/doc/artifact-sidecar.txt')) do
      assert(vim.fn.strdisplaywidth(line) <= 80, line)
      for reference in line:gmatch('|([^|%s]+)|') do
        if not tags[reference] and #vim.fn.getcompletion(reference, 'help') == 0 then
          lost[#lost + 1] = reference
        end
      end
    end
    same(lost, {})
    vim.cmd('help :Artifacts')
    has(vim.api.nvim_get_current_line(), '*:Artifacts*')
  end },

  { 'every command, key and option is described', function()
    local text = table.concat(vim.fn.readfile(folder .. '/doc/artifact-sidecar.txt'), '\n')
    for name in pairs(vim.api.nvim_get_commands({})) do
      if name:find('Artifacts', 1, true) or name == 'Sources' then
        has(text, '*:' .. name .. '*')
      end
    end
    for _, command in ipairs({ 'Artifacts tree', 'Sources' }) do
      vim.cmd(command)
      for _, map in ipairs(vim.api.nvim_buf_get_keymap(0, 'n')) do
        if map.desc then
          has(text, ('    %-11s %s'):format(map.lhs, ''):sub(1, 16))
        end
      end
    end
    for name in pairs(require('artifact_sidecar.options').get()) do
      has(text, '\n' .. name .. ' ')
    end
  end },

  { 'what the help says of colours is so', function()
    vim.cmd('Artifacts tree')
    local text = table.concat(vim.fn.readfile(folder .. '/doc/artifact-sidecar.txt'), '\n')
    local seen = 0
    for group, link in text:gmatch('(ArtifactSidecar%u%l+) +|?h?l?%-?(%u%a+)|?') do
      same(vim.api.nvim_get_hl(0, { name = group }).link, link, group)
      seen = seen + 1
    end
    same(seen, 11)
  end },
})
