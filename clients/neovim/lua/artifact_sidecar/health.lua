-- `:checkhealth artifact_sidecar`: what is there, what is missing, and what to do about it.

local ask = require('artifact_sidecar.ask')
local client = require('artifact_sidecar.client')
local discovery = require('artifact_sidecar.discovery')
local options = require('artifact_sidecar.options')

local M = {}

---@return boolean
local function command()
  local done, found, problem = false, nil, nil
  discovery.forget()
  discovery.command(function(...)
    done = true
    found, problem = ...
  end)
  vim.wait(30000, function()
    return done
  end, 10)
  if found then
    local words = 'artifact-sidecar %s: `%s`, from %s'
    vim.health.ok(words:format(found.version, table.concat(found.argv, ' '), found.from))
  else
    vim.health.error('no command: ' .. (problem or 'no answer'), {
      'Install artifact-sidecar into a Python environment and activate it, or put it on PATH.',
      "Or name it: vim.g.artifact_sidecar = { command = '/path/to/artifact-sidecar' }",
    })
  end
  return found ~= nil
end

---@return boolean
local function workspace()
  local out_dir, from = discovery.out_dir(vim.api.nvim_get_current_buf())
  if out_dir then
    vim.health.ok(('OUT_DIR is `%s`, from %s'):format(out_dir, from))
  else
    vim.health.warn('no workspace: ' .. from, {
      'Set the variable OUT_DIR, or vim.g.artifact_sidecar = { out_dir = ... }, or start Neovim in the workspace.',
    })
  end
  return out_dir ~= nil
end

local function daemon()
  local status, problem = ask.wait(30000, 'workspace/status', nil)
  if not status then
    vim.health.error('the daemon does not answer: ' .. (problem or ''), { ':ArtifactsLog', ':ArtifactsRestart' })
    return
  end
  local counts = status.counts
  local words = 'the daemon answers: %d turns, %d artifacts, %d sources'
  vim.health.ok(words:format(counts.turns, counts.artifacts, counts.sources))
  if status.watcher.state == 'ok' then
    vim.health.ok('OUT_DIR is watched')
  else
    vim.health.warn(('the watch is %s: %s'):format(status.watcher.state, status.watcher.reason or 'no reason given'))
  end
  local running = client.current()
  if running then
    local attached = vim.tbl_count(running.attached_buffers)
    local documents = attached == 1 and '1 open document is' or ('%d open documents are'):format(attached)
    vim.health.info(documents .. ' connected to the daemon, for links, hover, completion and diagnostics')
  end
end

function M.check()
  vim.health.start('artifact-sidecar')
  local version = tostring(vim.version())
  if vim.fn.has('nvim-0.10') == 1 then
    vim.health.ok('Neovim ' .. version)
  else
    vim.health.error('Neovim ' .. version .. ' is older than 0.10')
  end
  if vim.fn.has('nvim-0.11') == 0 then
    vim.health.info('links open by going to the definition; from Neovim 0.11 on by gx as well')
  end
  for name, value in pairs(type(vim.g.artifact_sidecar) == 'table' and vim.g.artifact_sidecar or {}) do
    if options.is_one(name) then
      vim.health.info(('option %s = %s'):format(name, vim.inspect(value)))
    else
      vim.health.warn('there is no option ' .. tostring(name), { ':help artifact-sidecar-options' })
    end
  end
  if command() and workspace() then
    daemon()
  end
end

return M
