# PGXS makefile: make && make install && make installcheck, with PG_CONFIG=... for another server.
#
#   with_llvm=no     builds and installs no bitcode: for a server with JIT whose clang is not installed
#   DESTDIR=...      installs below another root
#
# In this folder: make -C, not make -f.
#
# installcheck may be run by another user than the owner of this folder: sudo -u postgres make installcheck.

# Files are found by wildcards: elsewhere there would be none, and an empty extension.
HERE := $(dir $(lastword $(MAKEFILE_LIST)))
ifneq ($(realpath $(HERE)),$(realpath .))
$(error Build in the folder of the sources: make -C $(HERE))
endif

EXTENSION = snowflake
EXTVERSION = $(shell sed -n "s/^default_version = '\(.*\)'/\1/p" snowflake.control)

MODULE_big = snowflake
OBJS = $(patsubst %.cpp,%.o,$(sort $(wildcard src/*.cpp src/*/*.cpp)))
DATA_built = snowflake--$(EXTVERSION).sql
# Install scripts of earlier versions, as they were released, and the updates from each.
DATA = $(sort $(wildcard released/*.sql))
INSTALL_PARTS = $(sort $(wildcard src/install/*.sql))

REGRESS = $(patsubst sql/%.sql,%,$(sort $(wildcard sql/*.sql)))
# Of the databases of the tests, whatever that of the server is.
ENCODING = UTF8
REGRESS_OPTS = --load-extension=snowflake $(addprefix --outputdir=,$(OUTPUT))
ISOLATION = $(patsubst test/isolation/specs/%.spec,%,$(sort $(wildcard test/isolation/specs/*.spec)))
ISOLATION_OPTS = --inputdir=test/isolation --load-extension=snowflake $(patsubst %,--outputdir=%/isolation,$(OUTPUT))
PROVE_TESTS = test/t/*.pl
export HARNESS_RULESFILE = test/t/rules.yml
# They start servers of their own: not as root. They write into this folder, and need IPC::Run.
TAP_TESTS := $(shell [ "$$(id -u)" -ne 0 ] && [ -w . ] && perl -MIPC::Run -e 'print 1' 2>/dev/null)

# A user who cannot write into this folder gets the test results in a temporary one.
ifneq ($(filter installcheck,$(MAKECMDGOALS)),)
ifeq ($(shell [ -w . ] && echo yes),)
OUTPUT := $(shell mktemp -d)
$(info This folder is not writable: the results go to $(OUTPUT), and the TAP tests are left out.)
endif
endif

# CLI_TOGETHER=4 compiles the command in about so many parts: half of the compiler's time, where all is compiled.
CLI_OBJS = $(or $(CLI_PARTS:.cpp=.o),$(CLI_SOURCE_OBJS)) cli/sql/sql.o
CLI_SOURCE_OBJS = $(patsubst %.cpp,%.o,$(sort $(wildcard cli/*.cpp cli/*/*.cpp)))

PROGRAMS = cli/snowflake-shard test/unit/unit test/model/model test/model/model_move test/stress/stress test/mutations/mutations
# All that a C++ compiler writes; beside each of them is a file .d with the headers that it was made from.
COMPILED = $(OBJS) $(OBJS:.o=.bc) $(CLI_OBJS) cli/precompiled.h.gch $(UNIT_OBJS) $(MUTATIONS_OBJS) $(filter-out cli/%,$(PROGRAMS))
WRITE_HEADERS = -MMD -MP -MF $@.d

EXTRA_CLEAN = $(DATA_built) built-for $(PROGRAMS) $(COMPILED) $(COMPILED:=.d) together test/unit/cli test/mutations/cli cli/snowflake-shard.1 $(COMMANDS) tmp_check output_iso

SERVERLESS_GOALS = checkver dist unit model

# The library is C++ without its run time: it is linked by the C compiler, and runs inside a C
# program that jumps over frames. -Wno-register: the headers of PostgreSQL 15 say "register".
OWN_WARNINGS = -Wall -Wextra -Wconversion -Wshadow
PG_CXXFLAGS = -std=c++17 -fno-exceptions -fno-rtti -fno-threadsafe-statics -Wno-register \
	-fvisibility=hidden -fno-plt $(OWN_WARNINGS)
PG_CPPFLAGS = -I$(srcdir)/src

PG_CONFIG ?= pg_config
PGXS := $(wildcard $(shell $(PG_CONFIG) --pgxs 2>/dev/null))
ifneq ($(filter-out $(SERVERLESS_GOALS),$(or $(MAKECMDGOALS),all)),)
ifeq ($(PGXS),)
$(error PG_CONFIG=$(PG_CONFIG) is not the pg_config of a PostgreSQL with server headers. Install them (Debian and Ubuntu: postgresql-server-dev-N), or name another: make PG_CONFIG=/usr/lib/postgresql/N/bin/pg_config)
endif
endif
include $(PGXS)

ifeq ($(with_llvm),yes)
ifneq ($(filter all install,$(or $(MAKECMDGOALS),all)),)
ifeq ($(shell command -v $(firstword $(CLANG)) 2>/dev/null),)
$(error This server has JIT, and the clang that it was built with is not installed: $(CLANG). Install it, or build without bitcode: make with_llvm=no, and then make install with_llvm=no, too)
endif
endif
endif

# The clients of the TAP tests. (Below PGXS: what is said first in a makefile is what make makes.)
ifneq ($(TAP_TESTS),)
installcheck: test/stress/stress
endif

# The server that the objects are for: they are made anew for another one, also if only its minor version differs. Not the
# flags: "make install" after "make CXXFLAGS=..." compiles nothing.
BUILT_FOR = $(VERSION) $(includedir_server)
ifneq ($(BUILT_FOR),$(shell cat built-for 2>/dev/null))
.PHONY: built-for
endif
built-for:
	@echo '$(BUILT_FOR)' >$@
$(OBJS) $(OBJS:.o=.bc): built-for
$(OBJS): %.o: %.cpp
	$(COMPILE.cc) $(WRITE_HEADERS) -o $@ $<
# PGXS gives C++ bitcode no flags of the extension.
$(OBJS:.o=.bc): %.bc: %.cpp
	$(COMPILE.cxx.bc) $(PG_CXXFLAGS) $(WRITE_HEADERS) -o $@ $<

# The command snowflake-shard, where its headers are there; "make cli" makes nothing else. It is an
# ordinary C++ program: none of the library's flags. It waits for servers: -O2 makes it no faster, only its build slower.
CLI_FLAGS = -Og
CLI_PROBE = \#if !__has_include(<CLI/CLI.hpp>) || !__has_include(<nlohmann/json.hpp>) || !__has_include(<libpq-fe.h>)\n\#error\n\#endif
HAS_CLI_HEADERS := $(shell printf '$(CLI_PROBE)\n' | $(CXX) -std=c++17 -I$(includedir) -E -x c++ - >/dev/null 2>&1 && echo yes)
CLI_MISSING = snowflake-shard is left out: it takes the headers of CLI11, nlohmann-json and libpq (Debian and Ubuntu: libcli11-dev nlohmann-json3-dev libpq-dev)
# What is shared by all versions of PostgreSQL: /usr/share, not /usr/share/postgresql/15.
sharedir = $(shell echo '$(datadir)' | sed 's,/share/.*,/share,')
completionsdir = $(sharedir)/bash-completion/completions
# On Debian and Ubuntu the folder of packages' zsh completions has a name of its own.
zshdir = $(sharedir)/zsh/$(if $(wildcard /etc/debian_version),vendor-completions,site-functions)
fishdir = $(sharedir)/fish/vendor_completions.d
COMPLETIONS = $(completionsdir)/snowflake-shard $(zshdir)/_snowflake-shard $(fishdir)/snowflake-shard.fish
# A program of an extension goes into bindir, its manual page into mandir. On Debian and Ubuntu these are folders of one version of
# PostgreSQL, /usr/lib/postgresql/15/bin, where neither a shell nor man looks. So links lead there from /usr/local, to the
# version that was installed last. "make install localdir=" makes none.
localdir = $(shell echo '$(bindir)' | sed -n 's,/usr/lib/postgresql/[0-9]*/bin$$,/usr/local,p')
PROGRAM_FILE = $(bindir)/snowflake-shard
MANUAL_FILE = $(mandir)/man1/snowflake-shard.1
PROGRAM_LINK = $(DESTDIR)$(localdir)/bin/snowflake-shard
MANUAL_LINK = $(DESTDIR)$(localdir)/share/man/man1/snowflake-shard.1

.PHONY: cli install-cli uninstall-cli
ifeq ($(HAS_CLI_HEADERS),yes)
CLI_PARTS := $(if $(CLI_TOGETHER),$(or $(shell script/together together $(CLI_TOGETHER)),$(error script/together failed)))
cli: cli/snowflake-shard cli/snowflake-shard.1
all: cli
install: install-cli
else
cli:
	@echo '$(CLI_MISSING)'; exit 1
all install: cli-is-left-out
.PHONY: cli-is-left-out
cli-is-left-out:
	@echo '$(CLI_MISSING)'
endif
uninstall: uninstall-cli

CLI_COMPILE = $(CXX) -std=c++17 $(CLI_FLAGS) $(OWN_WARNINGS) -Icli -I$(includedir)
# The control file has the version.
cli/main.o cli/postgres/extension.o $(CLI_PARTS:.cpp=.o): snowflake.control
cli/%.o: cli/%.cpp cli/precompiled.h.gch
	$(CLI_COMPILE) -include cli/precompiled.h -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' $(WRITE_HEADERS) -c $< -o $@
together/%.o: together/%.cpp
	$(CLI_COMPILE) -DSNOWFLAKE_VERSION='"$(EXTVERSION)"' $(WRITE_HEADERS) -c $< -o $@
# Each statement of cli/sql is a text of the program: see cli/sql/sql.h.
CLI_SQL = $(sort $(wildcard cli/sql/*.sql))
cli/sql/sql.o: $(CLI_SQL)
	awk '/^-- name: /{ printf "%sextern const char %s_sql[] = R\"sql(", end, $$3; end = ")sql\";\n"; next } !/^ *--/; END { printf "%s", end }' \
		$(CLI_SQL) | $(CLI_COMPILE) -x c++ -c - -o $@
# -MD: its headers are those of the system.
cli/precompiled.h.gch: cli/precompiled.h
	$(CLI_COMPILE) $(WRITE_HEADERS:-MMD=-MD) -x c++-header $< -o $@
cli/snowflake-shard: $(CLI_OBJS)
	$(CXX) $(CLI_OBJS) -o $@ $(LDFLAGS) -L$(libdir) -lpq -pthread
cli/snowflake-shard.1: cli/snowflake-shard cli/manual.sh
	cli/manual.sh cli/snowflake-shard $(EXTVERSION) >$@.tmp && mv $@.tmp $@

install-cli: cli
	$(MKDIR_P) $(foreach folder,$(bindir) $(mandir)/man1 $(completionsdir) $(zshdir) $(fishdir),'$(DESTDIR)$(folder)')
	$(INSTALL_PROGRAM) cli/snowflake-shard '$(DESTDIR)$(PROGRAM_FILE)'
	$(INSTALL_DATA) cli/snowflake-shard.1 '$(DESTDIR)$(MANUAL_FILE)'
	$(INSTALL_DATA) cli/snowflake-shard.bash '$(DESTDIR)$(completionsdir)/snowflake-shard'
	$(INSTALL_DATA) cli/snowflake-shard.zsh '$(DESTDIR)$(zshdir)/_snowflake-shard'
	$(INSTALL_DATA) cli/snowflake-shard.fish '$(DESTDIR)$(fishdir)/snowflake-shard.fish'
ifneq ($(localdir),)
	$(MKDIR_P) '$(dir $(PROGRAM_LINK))' '$(dir $(MANUAL_LINK))'
	ln -sf '$(PROGRAM_FILE)' '$(PROGRAM_LINK)'
	ln -sf '$(MANUAL_FILE)' '$(MANUAL_LINK)'
endif
# A link to another version stays.
uninstall-cli:
	rm -f $(foreach file,$(PROGRAM_FILE) $(MANUAL_FILE) $(COMPLETIONS),'$(DESTDIR)$(file)')
ifneq ($(localdir),)
	[ "$$(readlink '$(PROGRAM_LINK)')" != '$(PROGRAM_FILE)' ] || rm '$(PROGRAM_LINK)'
	[ "$$(readlink '$(MANUAL_LINK)')" != '$(MANUAL_FILE)' ] || rm '$(MANUAL_LINK)'
endif

snowflake--$(EXTVERSION).sql: $(INSTALL_PARTS)
	@printf '%s\n' '\echo Use "CREATE EXTENSION snowflake" to load this file. \quit' >$@.tmp
	cat $(INSTALL_PARTS) >>$@.tmp
	mv $@.tmp $@

.PHONY: checkver
checkver:
	@script/checkver $(EXTVERSION)

# What is committed, as PGXN takes it.
DIST = $(EXTENSION)-$(shell sed -n 's/^    "version": "\(.*\)",/\1/p' META.json)
.PHONY: dist
dist: checkver
	git archive --format=zip --prefix=$(DIST)/ --output=$(DIST).zip HEAD

# Programs of the tests, for a debugger: TEST_DEBUG='-O0 -g'. Information for a debugger takes a third of the compiler's time.
# The properties of pure code, without a server: headers of the library, and the planner and the phases of the command. One
# compilation of all tests reads GoogleTest's headers once; the library and the command both have a Shard.
UNIT_TESTS = $(filter-out test/unit/phase_test.cpp,$(sort $(wildcard test/unit/*_test.cpp)))
UNIT_OBJS = test/unit/tests.o test/unit/phase_test.o test/unit/cli/fleet/phase.o test/unit/cli/plan/planner.o \
	test/unit/cli/program/refusal.o
UNIT_COMPILE = $(CXX) -std=c++17 -O1 $(TEST_DEBUG) $(OWN_WARNINGS) -Isrc -Icli $(WRITE_HEADERS)
.PHONY: unit
unit: test/unit/unit
test/unit/tests.o: $(UNIT_TESTS)
	printf '#include "%s"\n' $(UNIT_TESTS) | $(UNIT_COMPILE) -I. -x c++ -c - -o $@
test/unit/phase_test.o: test/unit/phase_test.cpp
	$(UNIT_COMPILE) -c $< -o $@
test/unit/cli/%.o: cli/%.cpp
	@mkdir -p $(@D)
	$(UNIT_COMPILE) -c $< -o $@
test/unit/unit: $(UNIT_OBJS)
	$(CXX) $(UNIT_OBJS) -o $@ -lgtest -lgtest_main -pthread

# Models of the generator and of moves, searched through, without a server.
.PHONY: model
model: test/model/model test/model/model_move
test/model/model: test/model/generator/model.cpp
	$(CXX) -std=c++17 -O2 $(TEST_DEBUG) $(OWN_WARNINGS) -Isrc $(WRITE_HEADERS) $< -o $@

MODEL_OBJS = test/unit/cli/fleet/phase.o test/unit/cli/program/next.o
test/model/model_move: test/model/model_move.cpp $(MODEL_OBJS)
	$(CXX) -std=c++17 -O2 $(TEST_DEBUG) $(OWN_WARNINGS) -Icli $(WRITE_HEADERS) $< $(MODEL_OBJS) -o $@

# The client that hunts duplicates, against a running server.
.PHONY: stress
stress: test/stress/stress
test/stress/stress: test/stress/stress.cpp
	$(CXX) -std=c++17 -O2 $(TEST_DEBUG) $(OWN_WARNINGS) -I$(includedir) $(WRITE_HEADERS) $< -o $@ -L$(libdir) -lpq -pthread

# The readers of the command with texts that are nearly good, under sanitizers, without a server. Objects of its own: those of
# the command are built without.
MUTATIONS_READERS = base/address base/files base/match base/quoting base/shards definition/marks fleet/catalog plan/plan_file plan/weights \
	postgres/connection postgres/dsn postgres/error_text postgres/server_file postgres/sql_text routers/pooler_file verbs/record
MUTATIONS_OBJS = $(patsubst %.cpp,%.o,$(wildcard test/mutations/*.cpp)) $(patsubst %,test/mutations/cli/%.o,$(MUTATIONS_READERS))
# Sections of their own: the linker leaves out the functions that need a server, and all that they call.
MUTATIONS_FLAGS = -std=c++17 -O1 -g -ffunction-sections -fsanitize=address,undefined -fno-sanitize-recover=all
MUTATIONS_COMPILE = $(CXX) $(MUTATIONS_FLAGS) $(OWN_WARNINGS) -Icli -I$(includedir) $(WRITE_HEADERS)
.PHONY: mutations
mutations: test/mutations/mutations
test/mutations/%.o: test/mutations/%.cpp
	$(MUTATIONS_COMPILE) -c $< -o $@
test/mutations/cli/%.o: cli/%.cpp
	@mkdir -p $(@D)
	$(MUTATIONS_COMPILE) -c $< -o $@
test/mutations/mutations: $(MUTATIONS_OBJS)
	$(CXX) $(MUTATIONS_FLAGS) -Wl,--gc-sections $(MUTATIONS_OBJS) -o $@ -L$(libdir) -lpq -pthread

# For clangd and clang-tidy: one command for all files, because they read a header as a file that includes it. None of gcc's own
# flags; with assertions, because clang-tidy learns from their conditions. The version may be any string.
COMMANDS = compile_commands.json
READ_COMMAND = clang++ -std=c++17 -Wall -Wextra -Wno-register -DUSE_ASSERT_CHECKING=1 -DSNOWFLAKE_VERSION=__FILE__ -Isrc -Icli \
	-isystem $(includedir) -isystem $(includedir_server)
.PHONY: $(COMMANDS)
$(COMMANDS):
	@find src cli test examples -name '*.cpp' | sort | \
		sed 's|.*|{"directory": "$(CURDIR)", "file": "&", "command": "$(READ_COMMAND) &"}|; 1s/^/[/; $$!s/$$/,/; $$s/$$/]/' >$@

-include $(COMPILED:=.d)
