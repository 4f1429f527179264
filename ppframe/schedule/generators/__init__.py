"""Generators: (P, V, M) → schedule, one file each. A new one adds its line here."""

from __future__ import annotations

from ppframe.schedule.generators import chimera as chimera
from ppframe.schedule.generators import dora as dora
from ppframe.schedule.generators import dora_dfs as dora_dfs
from ppframe.schedule.generators import dualpipe as dualpipe
from ppframe.schedule.generators import dualpipe_v as dualpipe_v
from ppframe.schedule.generators import eager_1f1b as eager_1f1b
from ppframe.schedule.generators import from_csv as from_csv
from ppframe.schedule.generators import gis as gis
from ppframe.schedule.generators import gis_h as gis_h
from ppframe.schedule.generators import gpipe as gpipe
from ppframe.schedule.generators import hanayo as hanayo
from ppframe.schedule.generators import interleaved_1f1b as interleaved_1f1b
from ppframe.schedule.generators import interleaved_zb as interleaved_zb
from ppframe.schedule.generators import looped_bfs as looped_bfs
from ppframe.schedule.generators import one_f_one_b as one_f_one_b
from ppframe.schedule.generators import stp as stp
from ppframe.schedule.generators import v_half as v_half
from ppframe.schedule.generators import v_min as v_min
from ppframe.schedule.generators import v_zb as v_zb
from ppframe.schedule.generators import zb_1p as zb_1p
from ppframe.schedule.generators import zb_2p as zb_2p
from ppframe.schedule.generators import zb_h1 as zb_h1
from ppframe.schedule.generators import zb_h2 as zb_h2
from ppframe.schedule.generators import zbv as zbv
