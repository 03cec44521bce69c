;;; eglot.el --- Emacs' own LSP client looks at a workspace  -*- lexical-binding: t -*-

;; Run by test_eglot.py in `emacs --batch`. The environment names the server's command (a JSON list), the document, and
;; a second one to go to. Every check prints a line; the first that fails ends Emacs with 1 and says what was there.

(require 'eglot)
(require 'json)
(require 'seq)
(require 'xref)

(defconst checks-ceiling 60 "Seconds that a condition is waited for; a busy machine is slow.")

(defun checks-until (what look)
  "Wait until LOOK answers something, for WHAT; the answer."
  (let ((deadline (+ (float-time) checks-ceiling)) found)
    (while (not (setq found (funcall look)))
      (when (> (float-time) deadline) (error "Was not so: %s" what))
      (accept-process-output nil 0.05))
    found))

(defun checks-holds (what text part)
  "Say that WHAT is right, or fail when PART is not in TEXT."
  (unless (and (stringp text) (string-search part text))
    (error "%s: %S is not in %S" what part text))
  (princ (format "ok %s\n" what)))

(defun checks-go-to (text)
  "Put point on the first character of TEXT."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0)))

(defun checks-run ()
  "Look at everything that eglot shows."
  (let* ((command (append (json-parse-string (getenv "SIDECAR_TEST_COMMAND")) nil))
         (eglot-server-programs `((text-mode . ,command)))
         (eglot-sync-connect 60)
         (eglot-connect-timeout 60))
    (find-file (getenv "SIDECAR_TEST_DOCUMENT"))
    (text-mode)
    (apply #'eglot--connect (eglot--guess-contact))
    ;; It returns before the buffer is managed.
    (checks-until "the buffer is managed" #'eglot-current-server)
    (princ "ok connect\n")

    (checks-go-to "[[S:4]]")
    (let (told)
      (checks-until "eldoc"
                    (lambda ()
                      (eglot-hover-eldoc-function (lambda (text &rest _) (setq told (format "%s" text))))
                      (checks-until "an answer" (lambda () (or told (accept-process-output nil 0.05) told)))
                      told))
      (checks-holds "hover, after an emoji" told "Exchange rates, monthly means"))

    (let ((marks (checks-until "diagnostics" (lambda () (flymake-diagnostics)))))
      (checks-holds "diagnostics"
                    (mapconcat (lambda (mark)
                                 (buffer-substring-no-properties (flymake-diagnostic-beg mark)
                                                                 (flymake-diagnostic-end mark)))
                               marks " ")
                    "[[S:99]]"))

    (checks-go-to "[[S:6]]")
    (let ((found (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot))))
      (checks-holds "definition" (format "%S" (mapcar #'xref-item-location found)) "targets.txt"))

    (goto-char (point-max))
    ;; Nothing behind the colon: eglot narrows by the word at point alone, whatever range an item is for.
    (insert "\n😀 read [[S:")
    (let* ((capf (eglot-completion-at-point))
           (offered (all-completions (buffer-substring-no-properties (nth 0 capf) (nth 1 capf)) (nth 2 capf))))
      (checks-holds "completion" (format "%S" (mapcar #'substring-no-properties offered)) "Harvest report"))
    (set-buffer-modified-p nil)
    (eglot-shutdown (eglot-current-server))
    (princ "ok shutdown\n")))

(condition-case failure
    (checks-run)
  (error (princ (format "FAIL %S\n" failure))
         (kill-emacs 1)))

;;; eglot.el ends here
