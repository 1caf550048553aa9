.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench mutants contracts vm rights screens clean

# auto: real Slurm daemons where they can run; real: nothing else will do; sim: simulated.
SLURM ?= auto
export SLURM

help:
	@echo "make demo    the whole loop on this machine (SLURM=sim: without root and Slurm)"
	@echo "make test    all checks and tests"
	@echo "make lint    the checks without the tests"
	@echo "make mutants breaks the product on purpose: how soon the simulation finds each deliberate"
	@echo "             fault, and which changes of modules, node by node, no test sees"
	@echo "make bench   every figure that the documents state; with TRACES=FOLDER also those of"
	@echo "             the replays: what two weeks of public histories would cost"
	@echo "make contracts  what real Slurm promises, on 22.05, 24.11 and 26.05 (root)"
	@echo "make vm      head and node as virtual machines that boot their user data, and probes (root)"
	@echo "make rights  what goes wrong without each right that the functions are granted"
	@echo "make screens  the documentation's screenshots, the reference of the cluster file, the glossary"
	@echo "make setup   what the others need; they call it themselves"
	@echo "make clean   delete what setup and tests made"

setup:
	@scripts/setup.sh

demo:
	@scripts/setup.sh && .venv/bin/python -m local.demo

test:
	@scripts/test.sh

lint:
	@scripts/test.sh --lint

bench:
	@SLURM=sim scripts/setup.sh && .venv/bin/python -m bench $(TRACES)

mutants:
	@SLURM=sim scripts/setup.sh && .venv/bin/python -m bench.mutation

contracts:
	@scripts/contracts.sh

vm:
	@scripts/vm.sh

rights:
	@SLURM=sim scripts/setup.sh && .venv/bin/python -m tests.stack.rights

screens:
	@SLURM=sim scripts/setup.sh && .venv/bin/python -m tests.cli.screens
	@.venv/bin/tidegate schema cluster --markdown > docs/cluster-file.md
	@.venv/bin/tidegate findings --markdown > docs/findings.md
	@.venv/bin/python -m bench.glossary > docs/glossary.md
	@.venv/bin/python -m bench.codes > docs/codes.md

clean:
	rm -rf .venv .tools node_modules cdk.out .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
