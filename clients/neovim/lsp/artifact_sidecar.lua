-- How Neovim 0.11 and later start the client; change it with `vim.lsp.config('artifact_sidecar', {...})`.
return require('artifact_sidecar.client').config()
