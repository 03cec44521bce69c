-- What other plugins and configurations may use: the name of a workspace's state for a statusline.

local M = {}

local counted ---@type { artifacts: integer, sources: integer, watcher: string }?
local listening = false
local asking = false

local function count()
  if asking then
    return
  end
  asking = true
  require('artifact_sidecar.ask').request('workspace/status', nil, function(status)
    asking = false
    counted = status
      and { artifacts = status.counts.artifacts, sources = status.counts.sources, watcher = status.watcher.state }
    vim.schedule(vim.cmd.redrawstatus)
  end)
end

--- A few words for the statusline: `3 artifacts · 2 sources`; empty where no client runs. Never waits.
---@return string
function M.statusline()
  local client = package.loaded['artifact_sidecar.client']
  if not (client and client.current()) then
    return ''
  end
  if not listening then
    listening = true
    client.listen('statusline', function(method)
      counted = method ~= 'exit' and counted or nil
      if method ~= 'exit' then
        vim.schedule(count)
      end
    end)
    count()
  end
  if not counted then
    return 'artifacts …'
  end
  local look = require('artifact_sidecar.look')
  local text = look.count(counted.artifacts, 'artifact') .. ' · ' .. look.count(counted.sources, 'source')
  return counted.watcher == 'ok' and text or text .. ' · watch ' .. counted.watcher
end

return M
