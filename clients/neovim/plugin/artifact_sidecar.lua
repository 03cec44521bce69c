-- Makes the commands, and has Neovim start the client when a document of a workspace is opened. Everything else is
-- loaded when it is first used; there is no setup() to call. Options are in `vim.g.artifact_sidecar`.

if vim.g.loaded_artifact_sidecar then
  return
end
vim.g.loaded_artifact_sidecar = true

if vim.fn.has('nvim-0.10') == 0 then
  vim.notify('artifact-sidecar needs Neovim 0.10 or later', vim.log.levels.WARN)
  return
end

local command = vim.api.nvim_create_user_command
local group = vim.api.nvim_create_augroup('artifact_sidecar', {})

command('Artifacts', function(given)
  require('artifact_sidecar.commands').artifacts(given)
end, {
  nargs = '?',
  desc = 'What the agent made: a picker, or `tree`, `preview`, or the artifact at a path',
  complete = function(lead)
    return require('artifact_sidecar.commands').complete(lead)
  end,
})

command('Sources', function(given)
  require('artifact_sidecar.commands').sources(given)
end, {
  nargs = '?',
  desc = 'What can be cited: a list, or `pick`',
  complete = function()
    return { 'pick' }
  end,
})

command('ArtifactsRestart', function(given)
  require('artifact_sidecar.client').restart({ daemon = given.bang })
end, { bang = true, desc = 'Start the client again; with ! the daemon as well' })

command('ArtifactsLog', function()
  require('artifact_sidecar.log').open()
end, { desc = 'What the daemon wrote into its log' })

-- What is no file of OUT_DIR as it stands: versions of the past, the tree and the sources.
vim.api.nvim_create_autocmd('BufReadCmd', {
  group = group,
  pattern = 'artifact-sidecar://*',
  callback = function(event)
    require('artifact_sidecar.documents').read(event.buf, event.match)
  end,
})

-- Neovim 0.11 finds `lsp/artifact_sidecar.lua` by its name; before, we look at each document ourselves.
if vim.lsp.enable then
  vim.lsp.enable('artifact_sidecar')
else
  vim.api.nvim_create_autocmd('FileType', {
    group = group,
    callback = function(event)
      require('artifact_sidecar.client').attach(event.buf)
    end,
  })
end
