"""All deliberate faults that the simulation has to find."""

from bench.mutants_of_doing import FAULTS_OF_DOING
from bench.mutants_of_leaving import FAULTS_OF_LEAVING
from bench.mutants_of_plans import FAULTS_OF_PLANS

MUTANTS = (*FAULTS_OF_PLANS, *FAULTS_OF_DOING, *FAULTS_OF_LEAVING)
