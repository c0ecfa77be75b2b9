"""LG-FedAvg beside its authors' program.

Of github.com/pliang279/LG-FedAvg at 7af0568b2cae88922ebeacc021b1679815092f4e ran main_lg.py whole, with LocalUpdate of
models/Update.py and num_layers_keep 1, on these examples. Set as here: full batches, two local epochs, rate 0.5, its
fixed momentum 0.5. The model that it loads, in its experiments one that FedAvg has trained, was the first one of this
problem.

All agrees: the output layer, which is averaged, and each client's hidden layer, in both rounds. Its mean is that of
clients alike, so ours has aggregator.weighting=uniform, where algorithm=lg_fedavg weighs by examples. It has no
auxiliary losses of the representations. What it reports are the best models of each client that its test data have
seen, of which it averages the output layers once more; here the last ones are measured. (The same lines, as --alg lg of
FedRep's program, come to the same.)
"""

import pytest
from authors.three_clients import BODY, HEAD, assert_parts_agree, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

WORDS = (
    *("local=personal_layer", "local.layers=body", "local.lr=0.5", "local.momentum=0.5", "local.epochs=2"),
    *("local.batch_size=full", "aggregator.weighting=uniform", "rounds=2"),
)
FIRST_HEAD = """
0.8562372648 -0.3833320748 0.1727958396 -0.2762219133 0.4846713643 0.3949570409 0.04498464852 0.1486607105 -0.5677528805
-0.03982465964 0.04230115094 -0.002476491303
"""
FIRST_BODIES = """
0.7308678411 -0.40772198 -0.009224584255 0.8180102544 -0.43428899 0.2365864426 0.1085946515 -0.2930114704 0.330102071
0.8220732531 0.02061267219 -0.002723058309 0.5234320782 -0.05367729088 0.3976849354 0.3142816267 -0.464906774
-0.1527126652
0.4159844131 -0.1583085747 0.4161008198 0.6734272431 -0.5432157672 -0.1069346678 -0.0792999151 0.03318566582
-0.1814626372
"""
SECOND_HEAD = """
1.022802006 -0.4212373109 0.2203164723 -0.3331743073 0.5137819557 0.4668698768 -0.06462769877 0.1574553552 -0.6871863491
-0.05765005297 -0.005435074117 0.06308512709
"""
SECOND_BODIES = """
0.9124711072 -0.5386712882 -0.1999783066 0.8671346029 -0.3976884811 0.3081964313 0.102839843 -0.3013805274 0.5264190854
0.9929647364 0.1522029771 -0.1509977127 0.3809268067 0.2659867221 0.5903570542 0.3587314382 -0.6356825263 -0.3191228207
0.3163537903 -0.08331736805 0.4961124032 0.6066555566 -0.5284165504 -0.3459222156 -0.3123702115 0.207412036
-0.3224255405
"""


@pytest.mark.parametrize("engine", ["loop", "stacked"])
def test_two_rounds(tiny: Tiny, tmp_path, engine: str):
    world = three_clients(tiny, tmp_path, *WORDS, f"engine={engine}")
    assert_parts_agree(world, (HEAD, BODY), (FIRST_HEAD, FIRST_BODIES), (SECOND_HEAD, SECOND_BODIES))
