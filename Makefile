# Makefile - builds libcfx, the cfx command, the Python extension, and runs every check.
#
#   make demo     a network in C, captured, transformed, run (needs gcc and make only)
#   make test     sets up .venv, builds everything, runs every test; FULL=1 adds the slow ones
#   make check    the C tests alone (gcc, make, sh)
#   make test-pythons   the Python tests with every Python from 3.11 to 3.14 that is found
#   make lint python golden bench fuzz coverage install clean
#
# Flavours, each with its own object folder: SAN=1 (address and undefined behaviour sanitizers),
# DEBUG=1 (-O0, asserts), COV=1 (gcov), FUZZ=1 (SAN plus edge tracing), TSAN=1 (data races: see
# `make tsan`). V=1 shows the commands.

CC      ?= cc
HOSTCC  ?= $(CC)
CXX     ?= g++
AR      ?= ar
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
WERROR  ?= -Werror
FUZZ_ITERS ?= 20000
PYTHON  ?= $(if $(wildcard .venv/bin/python),.venv/bin/python,python3)

# ---- version: include/cfx/base.h is the only place that states it
version_part = $(shell sed -n 's/^\#define CFX_VERSION_$1[ \t]*\([0-9]*\).*/\1/p' include/cfx/base.h)
MAJOR   := $(call version_part,MAJOR)
VERSION := $(MAJOR).$(call version_part,MINOR).$(call version_part,PATCH)
SONAME  := libcfx.so.$(MAJOR)

# ---- flavour
B   := build
# Where the extension is built: another folder for another Python, of the same library.
PY_BUILD ?= $(B)
# No tables for unwinding: nothing is thrown through the library, and they are a tenth of it.
OPT := -O2 -DNDEBUG -fno-asynchronous-unwind-tables
ifeq ($(DEBUG),1)
B   := build-debug
OPT := -O0 -g
endif
ifeq ($(SAN),1)
B   := build-san
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
endif
ifeq ($(TSAN),1)
B   := build-tsan
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=thread -Wno-maybe-uninitialized
endif
ifeq ($(COV),1)
B   := build-cov
OPT := -O0 -g --coverage -fprofile-update=atomic
endif
ifeq ($(FUZZ),1)
B   := build-fuzz
OPT := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined,float-cast-overflow \
	-fno-sanitize-recover=all
TRACE := -fsanitize-coverage=trace-pc
endif
Q   := $(if $(filter 1,$(V)),,@)
say  = $(if $(filter 1,$(V)),,@echo "  $1 $@")

WARN := -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes -Wmissing-prototypes
# A library function may be inlined into its neighbours: nobody interposes cfx_* symbols.
BASE_CFLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) $(OPT) -fPIC -fvisibility=hidden \
	-fno-semantic-interposition -ffunction-sections -pthread
SHARED := -shared -Wl,-Bsymbolic-functions
LIBS    := -lm -pthread

# ---- sources: whatever .c lies in these folders is built
HEADERS   := $(sort $(shell find include -name '*.h' -o -name '*.def'))
LIB_SRC   := $(sort $(shell find src -name '*.c'))
CLI_SRC   := $(wildcard cli/*.c)
PY_SRC    := $(wildcard python/src/*/*.c)
UNIT_SRC  := $(wildcard tests/unit/*/*.c)
PROP_SRC  := $(wildcard tests/prop/prop_*.c)
PROP_LIB  := $(wildcard tests/prop/random_*.c)
EX_SRC    := $(wildcard examples/*.c examples/c/*.c)
EX_CXX    := $(if $(shell command -v $(CXX)),$(wildcard examples/c/*.cpp))
PROBE_SRC := $(wildcard tests/c_models/*.c)
BENCH_SRC := $(wildcard bench/*.c)
FUZZ_SRC  := $(wildcard tests/fuzz/fuzz_*.c)
GEN_SRC   := $(wildcard tools/generate/*.c)

GEN_OBJ   := $(GEN_SRC:tools/%.c=build/host/%.o)
LIB_OBJ   := $(LIB_SRC:%.c=$(B)/%.o)
CLI_OBJ   := $(CLI_SRC:%.c=$(B)/%.o)
PY_OBJ    := $(PY_SRC:%.c=$(PY_BUILD)/%.o)
UNIT_BIN  := $(addprefix $(B)/tests/,$(basename $(notdir $(UNIT_SRC))))
PROP_BIN  := $(PROP_SRC:tests/prop/%.c=$(B)/tests/%)
EX_BIN    := $(EX_SRC:%.c=$(B)/%)
CXX_BIN   := $(foreach std,11 20,$(EX_CXX:%.cpp=$(B)/%-c++$(std)))
PROBE_BIN := $(PROBE_SRC:%.c=$(B)/%)
BENCH_BIN := $(BENCH_SRC:%.c=$(B)/%)
FUZZ_BIN  := $(FUZZ_SRC:tests/fuzz/%.c=$(B)/fuzz/%)

.PHONY: all demo test test-pythons check lint python golden bench clients zoo fuzz fuzz-run replay \
	tsan tsan-run coverage install clean programs FORCE
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

all: $(B)/libcfx.a $(B)/libcfx.so $(if $(CLI_SRC),$(B)/cfx)

# ---- compile and link
# A stamp is rewritten only when the variable it is named after changes.
flags   = $(CC) $(BASE_CFLAGS) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
objects = $(LIB_OBJ) $(CLI_OBJ) $(PY_SRC)
headers = $(HEADERS)
$(B)/flags.stamp $(B)/objects.stamp $(B)/headers.stamp: $(B)/%.stamp: FORCE
	@mkdir -p $(@D)
	@echo '$($*)' | cmp -s - $@ || echo '$($*)' >$@

includes = -Iinclude -I$(B)/include $(if $(filter src/% tests/% bench/%,$<),-Isrc) \
	$(if $(filter src/%,$<),-I$(B)/generated) \
	$(if $(filter tests/%,$<),-Itests/unit) \
	$(if $(filter python/%,$<),-Ipython/src -I. -isystem $(PY_INCLUDE))
PY_INCLUDE = $(eval PY_INCLUDE := $(shell $(PYTHON) -c \
	'import sysconfig; print(sysconfig.get_path("include"))'))$(PY_INCLUDE)

# ---- generated from the tables and Python sources: two public headers, and what src includes
# The program is built plainly, once for all flavours. It leaves files alone that do not change, so
# a stamp says when it ran; a file that somebody removed is made again.
MADE_HEADERS := cfx/operators.h cfx/layers.h
MADE := $(MADE_HEADERS:%=$(B)/include/%) $(B)/generated/ops_index.inc \
	$(B)/generated/c_names.inc $(B)/generated/prelude.inc $(B)/generated/library.inc
SOURCES := src/script/evaluate/prelude.py src/script/world/library.py
generate = build/host/cfx-generate $(B) $(SOURCES) $(filter %.h,$(HEADERS))

build/host/%.o: tools/%.c
	@mkdir -p $(@D)
	$(call say,HOST)
	$(Q)$(HOSTCC) -std=c11 -D_POSIX_C_SOURCE=200809L $(WARN) -O1 -Iinclude -Isrc -MD -MP -c -o $@ $<

build/host/cfx-generate: $(GEN_OBJ)
	$(call say,HOST)
	$(Q)$(HOSTCC) -o $@ $^

$(B)/generated.stamp: build/host/cfx-generate $(HEADERS) $(SOURCES) $(B)/headers.stamp
	$(call say,GEN )
	$(Q)$(generate) && touch $@

$(MADE): $(B)/generated.stamp
	$(Q)[ -e $@ ] || $(generate)

# $(B)/include has all public headers, as an installation does: links to the others.
$(B)/include.stamp: $(B)/headers.stamp
	$(Q)mkdir -p $(sort $(dir $(HEADERS:%=$(B)/%))) && find $(B)/include -type l -delete
	$(Q)for h in $(HEADERS); do \
	    ln -sf "$$(dirname "$(B)/$$h" | sed 's|[^/]*|..|g')/$$h" "$(B)/$$h"; done && touch $@

# -MD, not -MMD: headers of ours that say "system_header" would be left out, and what they include.
define compile
	@mkdir -p $(@D)
	$(call say,CC  )
	$(Q)$(CC) $(BASE_CFLAGS) $(if $(filter src/%,$<),$(TRACE)) $(includes) $(CPPFLAGS) $(CFLAGS) \
	    -MD -MP -c -o $@ $<
endef
$(B)/%.o: %.c $(B)/flags.stamp | $(MADE) $(B)/include.stamp
	$(compile)
ifneq ($(PY_BUILD),$(B))
$(PY_BUILD)/%.o: %.c $(B)/flags.stamp | $(MADE) $(B)/include.stamp
	$(compile)
endif

# What runs once for each model that is captured or loaded is compiled for size: it is a fifth of
# the library. Observers are not: they see every element; nor is what each run of a plan does.
SMALL := script/world script/evaluate dim analysis match lower guard format runtime/kernels/python \
	quantize plan
ifeq ($(B),build)
$(SMALL:%=$(B)/src/%/%.o): CFLAGS += -Os
$(B)/src/quantize/observe%.o $(B)/src/plan/plan_run.o: CFLAGS += -O2
endif

# What is compiled while these run finds the library in them.
WHOLE := -Wl,--export-dynamic -Wl,--whole-archive
link = $(CC) $(OPT) $(CFLAGS) $(LDFLAGS) -o $@ $(WITH) $(filter %.o %.a,$^) \
	$(if $(WITH),-Wl$(comma)--no-whole-archive -ldl) $(LIBS)
comma := ,

$(B)/libcfx.a: $(LIB_OBJ) $(B)/objects.stamp
	$(call say,AR  )
	$(Q)rm -f $@ && $(AR) rcs $@ $(LIB_OBJ)

$(B)/libcfx.so: $(LIB_OBJ) $(B)/objects.stamp
	$(call say,LD  )
	$(Q)$(link) $(SHARED) -Wl,-soname,$(SONAME) && ln -sf libcfx.so $(B)/$(SONAME)

$(B)/cfx: $(CLI_OBJ) $(B)/libcfx.a
$(B)/cfx $(B)/tests/prop_c: WITH := $(WHOLE)
$(B)/examples/c/%: WITH := $(WHOLE)
$(foreach f,$(UNIT_SRC),$(eval $(B)/tests/$(basename $(notdir $f)): $(f:%.c=$(B)/%.o)))
$(UNIT_BIN): $(B)/libcfx.a
$(PROP_BIN): $(B)/tests/%: $(B)/tests/prop/%.o $(PROP_LIB:%.c=$(B)/%.o) $(B)/libcfx.a
$(EX_BIN) $(BENCH_BIN) $(PROBE_BIN): %: %.o $(B)/libcfx.a
$(FUZZ_BIN): $(B)/fuzz/%: $(B)/tests/fuzz/%.o $(B)/tests/fuzz/driver.o $(B)/libcfx.a
$(B)/cfx $(UNIT_BIN) $(PROP_BIN) $(EX_BIN) $(PROBE_BIN) $(BENCH_BIN) $(FUZZ_BIN):
	@mkdir -p $(@D)
	$(call say,LD  )
	$(Q)$(link)

# Programs in C++, once for each standard that the headers look different in.
$(EX_CXX:%.cpp=$(B)/%-c++11): $(B)/%-c++11: %.cpp
$(EX_CXX:%.cpp=$(B)/%-c++20): $(B)/%-c++20: %.cpp
$(CXX_BIN): $(B)/libcfx.a $(B)/flags.stamp | $(MADE) $(B)/include.stamp
	@mkdir -p $(@D)
	$(call say,CXX )
	$(Q)$(CXX) -std=$(lastword $(subst -, ,$@)) -Wall -Wextra $(WERROR) $(OPT) -I$(B)/include $(CPPFLAGS) \
	    -MD -MP -o $@ $(filter %.cpp,$^) $(B)/libcfx.a $(LDFLAGS) $(LIBS)

# ---- the extension, in place: python/cfx/_core.<EXT_SUFFIX>
# It has the command, too: `python -m cfx`.
$(PY_BUILD)/python/_core.so: $(PY_OBJ) $(filter-out %/main.o,$(CLI_OBJ)) $(LIB_OBJ) \
		$(B)/objects.stamp
	$(call say,LD  )
	$(Q)$(link) $(SHARED)

# install(1) makes a new file, so that a process that has the old one mapped is left alone.
python: $(PY_BUILD)/python/_core.so
	$(Q)ext=python/cfx/_core$$($(PYTHON) -c \
	    'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))') && \
	{ cmp -s $< $$ext || { echo "  PY   $$ext" && install -m 755 $< $$ext; }; }

# ---- run things
# On all processors, unless -j says otherwise: it is the first thing that people do.
demo:
	$(Q)$(MAKE) --no-print-directory $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(shell \
	    getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)) $(B)/cfx
	$(Q)CC='$(CC)' $(B)/cfx demo

programs: $(UNIT_BIN) $(PROP_BIN) $(EX_BIN) $(PROBE_BIN) $(CXX_BIN)

check: programs $(B)/libcfx.a $(B)/libcfx.so
	$(Q)CC='$(CC)' CXX='$(CXX)' sh tests/check.sh $(B) $(UNIT_BIN) $(PROP_BIN) $(EX_BIN) \
	    $(CXX_BIN)

golden: $(B)/cfx
	$(Q)$(PYTHON) tests/golden/run.py --cfx $(B)/cfx

lint: $(MADE) $(B)/include.stamp
	$(Q)bad=0; for tool in layers.py style.py pass_docs.py op_docs.py pipeline_svg.py \
	    'documented.py $(B)/include'; do \
	    $(PYTHON) tools/$$tool || bad=$$((bad + 1)); done; \
	CC='$(CC)' CXX='$(CXX)' sh tools/headers.sh $(B)/include || bad=$$((bad + 1)); \
	echo "lint: $$((7 - bad)) passed, $$bad failed"; exit $$bad

# tests/run.py starts make itself, with the variables given here but not this make's job server.
test:
	$(Q)$(if $(filter 1,$(FULL)),CFX_FULL=1) $$(sh tools/venv.sh --which) -u tests/run.py $(B) \
	    make $(MAKEOVERRIDES)

# Needs torch, and a package index for the clients: see tools/clients.txt.
clients: python
	$(Q)$(PYTHON) tools/clients.py --update

# Likewise, for the models of tools/zoo.txt. ZOO names some of them: "timm transformers:llama".
zoo: python
	$(Q)$(PYTHON) tools/zoo.py --update $(ZOO)

# PYTHONS names versions ("3.12 3.13"); TORCH=1 installs torch for them, which may be large.
test-pythons:
	$(Q)PYTHONS='$(PYTHONS)' TORCH='$(TORCH)' $$(sh tools/venv.sh --which) -u tests/pythons.py $(B) \
	    make $(MAKEOVERRIDES)

# But bench/infer.py, which takes hours and wants other engines: see its first lines.
bench: $(BENCH_BIN) $(if $(PY_SRC),python)
	$(Q)set -e; for b in $(BENCH_BIN); do echo "== $$b"; $$b; done; \
	for b in $(filter-out bench/models.py bench/infer.py,$(wildcard bench/*.py)); do \
	    echo "== $$b"; PYTHONPATH=python $(PYTHON) $$b; done

fuzz:
	$(Q)$(MAKE) --no-print-directory FUZZ=1 fuzz-run
fuzz-run: $(FUZZ_BIN)
	$(Q)set -e; for f in $(FUZZ_BIN); do n=$${f##*/fuzz_}; \
	    $$f -runs=$(FUZZ_ITERS) -artifact_prefix=$(B)/fuzz/$$n- tests/fuzz/corpus/$$n; done

# The corpora alone, in any flavour: every input that once was wrong.
replay: $(FUZZ_BIN)
	$(Q)bad=0; for f in $(FUZZ_BIN); do n=$${f##*/fuzz_}; \
	    $$f -artifact_prefix=$(B)/fuzz/$$n- tests/fuzz/corpus/$$n || bad=$$((bad + 1)); done; \
	echo "replay: $$(($(words $(FUZZ_BIN)) - bad)) passed, $$bad failed"; exit $$bad

# Data races: the tests that use threads.
tsan:
	$(Q)$(MAKE) --no-print-directory TSAN=1 tsan-run
tsan-run: $(addprefix $(B)/tests/,pool recycle gemm conv products program session plan growing peak \
		concurrent library_call executable)
	$(Q)bad=0; for t in $^; do $$t || bad=$$((bad + 1)); done; \
	echo "tsan: $$(($(words $^) - bad)) passed, $$bad failed"; exit $$bad

# COVER names what to run: `make coverage COVER=test` adds the Python tests.
COVER ?= check golden
coverage:
	$(Q)find build-cov -name '*.gcda' -delete 2>/dev/null || true
	$(Q)$(MAKE) --no-print-directory COV=1 $(COVER); status=$$?; \
	    sh tools/coverage.sh build-cov; exit $$status

install: all
	$(Q)set -e; d='$(DESTDIR)'; install -d "$$d$(PREFIX)/bin" "$$d$(LIBDIR)/pkgconfig"; \
	for h in $(HEADERS:include/%=%) $(MADE_HEADERS); do \
	    install -D -m 644 "$(B)/include/$$h" "$$d$(PREFIX)/include/$$h"; done; \
	install -m 644 $(B)/libcfx.a "$$d$(LIBDIR)"; \
	install -m 755 $(B)/libcfx.so "$$d$(LIBDIR)/$(SONAME)"; \
	ln -sf $(SONAME) "$$d$(LIBDIR)/libcfx.so"; \
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	    cfx.pc.in >"$$d$(LIBDIR)/pkgconfig/cfx.pc"; \
	install -m 755 $(B)/cfx "$$d$(PREFIX)/bin/cfx"; \
	share() { install -d "$$d$(PREFIX)/share/$$1"; to="$$d$(PREFIX)/share/$$1/$$2"; shift 2; \
	    $(B)/cfx "$$@" >"$$to"; }; \
	share man/man1 cfx.1 help --man; share zsh/site-functions _cfx completion zsh; \
	share bash-completion/completions cfx completion bash; \
	share fish/vendor_completions.d cfx.fish completion fish; \
	echo 'Programs find $(SONAME) after ldconfig, or with LD_LIBRARY_PATH=$(LIBDIR)'

clean:
	rm -rf build build-debug build-san build-tsan build-cov build-fuzz build-arm64 python/cfx/_core.*.so

-include $(shell find $(sort $(B) $(PY_BUILD) build/host) -type f -name '*.d' 2>/dev/null)
