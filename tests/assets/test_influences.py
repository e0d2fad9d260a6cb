import math

import dagster as dg
import numpy as np
import pandas as pd
import pytest

from assets import calibration, ratings
from assets.columns import as_coded, as_table
from assets.influences import INFLUENCE_COLUMNS, influence_table, influences_add_up
from judgeline.beta import fit_beta_folds
from judgeline.heldout import RatingSettings, fit_heldout_ratings
from resources.corpora.definitions import RatingOptions
