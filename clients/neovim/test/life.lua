local support = dofile(vim.env.SIDECAR_TEST_SUPPORT)
local eventually, go_to, has, same = support.eventually, support.go_to, support.has, support.same

support.run({
  { 'a document of the workspace gets one client, and so does the next one', function()
    support.edit('turn_1/files/report.md')
    local client = support.attached()
    same(client.offset_encoding, support.modern and 'utf-8' or 'utf-16')
    support.edit('turn_1/files/sales.csv')
    same(support.attached().id, client.id)
    vim.cmd.enew()
    vim.bo.filetype = 'lua'
    same(vim.lsp.get_clients({ bufnr = 0 }), {})
  end },

  { 'the statusline says how much there is', function()
    local statusline = require('artifact_sidecar').statusline
    eventually('counts', function()
      return statusline():match('^%d+ artifacts · %d+ sources$')
    end)
  end },

  { 'when the daemon is killed, the next one is found, and the tree goes on', function()
    vim.cmd('Artifacts tree')
    go_to('summary.pdf')
    vim.uv.kill(tonumber(vim.env.SIDECAR_TEST_DAEMON), 'sigkill')
    support.write('turn_3/files/after.md', '# After\n')
    local line = go_to('Now the outlook')
    vim.api.nvim_win_set_cursor(0, { line, 0 })
    support.type('<CR>')
    go_to('after.md')
    support.edit('turn_1/files/report.md')
    support.attached()
    same(support.ask('workspace/status').watcher.state, 'ok')
  end },

  { ':ArtifactsRestart starts the client again, for the documents that had it', function()
    support.edit('turn_1/files/report.md')
    local before = support.attached().id
    vim.cmd('ArtifactsRestart')
    eventually('another client', function()
      local client = vim.lsp.get_clients({ bufnr = 0, name = 'artifact_sidecar' })[1]
      return client and client.id ~= before and client.initialized
    end)
    eventually('it is said', function()
      return vim.tbl_contains(support.messages, 'artifact-sidecar: started again')
    end)
  end },

  { ':ArtifactsRestart! starts the daemon again as well', function()
    support.edit('turn_1/files/report.md')
    support.attached()
    local uptime = support.ask('workspace/status').uptime_seconds
    vim.cmd('ArtifactsRestart!')
    eventually('it is said', function()
      return vim.tbl_contains(support.messages, 'artifact-sidecar: started again, the daemon as well')
    end)
    assert(support.ask('workspace/status').uptime_seconds < uptime + 60)
    support.attached()
  end },

  { ':ArtifactsLog shows what the daemon wrote', function()
    vim.cmd('ArtifactsLog')
    eventually('the log', function()
      return vim.bo.filetype == 'artifact-sidecar-log'
    end)
    has(support.lines()[#support.lines()], "Neovim's client writes into")
    assert(#support.lines() > 3)
  end },

  { ':checkhealth says that all is well', function()
    vim.cmd('checkhealth artifact_sidecar')
    local text = table.concat(support.lines(), '\n')
    has(text, 'the daemon answers: 3 turns')
    has(text, 'OUT_DIR is watched')
    has(text, 'OUT_DIR is `' .. support.out_dir)
    assert(not text:find('ERROR', 1, true), text)
  end },
})
