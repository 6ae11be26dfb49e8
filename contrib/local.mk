# SPDX-License-Identifier: Apache-2.0
# Shell completions, made from the option table of each command once it is
# built: contrib/completion/bash/NAME and contrib/completion/zsh/_NAME.
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions

noinst_DATA += contrib/completion/.stamp
contrib/completion/.stamp: $(bin_PROGRAMS) scripts/mkcomplete
	@rm -rf contrib/completion
	@$(MKDIR_P) contrib/completion/bash contrib/completion/zsh
	$(AM_V_GEN)for p in $(bin_PROGRAMS); do \
	  n=`basename "$$p" '$(EXEEXT)'`; o=contrib/completion/$$n.opts; \
	  ./$$p --dump-options > $$o || { \
	    echo "no completion for $$n: --dump-options failed" >&2; rm -f $$o; continue; }; \
	  $(SHELL) $(srcdir)/scripts/mkcomplete bash < $$o > contrib/completion/bash/$$n && \
	  $(SHELL) $(srcdir)/scripts/mkcomplete zsh < $$o > contrib/completion/zsh/_$$n || exit 1; \
	done; touch $@

install-data-local: contrib/completion/.stamp
	$(MKDIR_P) '$(DESTDIR)$(bashcompdir)' '$(DESTDIR)$(zshcompdir)'
	for f in contrib/completion/bash/*; do \
	  [ ! -f "$$f" ] || $(INSTALL_DATA) "$$f" '$(DESTDIR)$(bashcompdir)' || exit 1; done
	for f in contrib/completion/zsh/*; do \
	  [ ! -f "$$f" ] || $(INSTALL_DATA) "$$f" '$(DESTDIR)$(zshcompdir)' || exit 1; done

uninstall-local:
	for p in $(bin_PROGRAMS); do n=`basename "$$p" '$(EXEEXT)'`; \
	  rm -f '$(DESTDIR)$(bashcompdir)'/$$n '$(DESTDIR)$(zshcompdir)'/_$$n; done

clean-local: clean-completion
clean-completion:
	rm -rf contrib/completion
.PHONY: clean-completion
EXTRA_DIST += contrib/compare-llama-cpp.py contrib/mk-ggml-golden.py contrib/mk-gguf.py contrib/mk-template-cases.py
