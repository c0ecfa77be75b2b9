"""q-FedAvg beside its authors' program.

Of github.com/litian96/fair_flearn at f09797113147b5ae66eb0348e93f575d5d63baed ran the Server of
flearn/trainers/qffedavg.py with the aggregate2 of fedbase.py; a network in PyTorch stood in for that in TensorFlow,
in float64. learning_rate 0.1 (from which it estimates L), num_epochs 2, batch_size 2, all three clients. Its clients
shuffle; here they do not. It lets its rounds run once more than num_rounds says.

Nothing differs: the losses are exact, taken before training, and 1e-10 is added to them in both programs.
"""

import pytest
from authors.servers import TWO_EPOCHS, assert_agrees, models, three_clients
from worlds import Tiny

pytestmark = pytest.mark.usefixtures("_double")

MEAN = """
0.4592835548 -0.7621831767 0.2822729188 1.012417075 0.09747934572 -0.2082670013 0.7326444289 -0.5078580339
-0.2326444289 0.6328580339 0.03690731087 -0.09940731087 0.4218800963 -0.7722125781 0.3122963772 1.022503123
0.07485725279 -0.1723365352 0.7169318998 -0.5155816097 -0.2169318998 0.6405816097 0.01827029625 -0.08077029625
"""
FAIR = """
0.4831916058 -0.7436847607 0.2616494354 1.000493776 0.1158878414 -0.226823541 0.7319171876 -0.4895669902 -0.2319171876
0.6145669902 0.05817703207 -0.1206770321 0.4671889187 -0.7377132786 0.2724885047 1.00134386 0.1071872581 -0.2043323704
0.714401413 -0.4795668473 -0.214401413 0.6045668473 0.05464933534 -0.1171493353
"""
FAIRER = """
0.5025529148 -0.731324053 0.2421553037 0.994876296 0.1277777323 -0.2364578717 0.7326456502 -0.4751708766 -0.2326456502
0.6001708766 0.0735111383 -0.1360111383 0.5037173325 -0.714206161 0.2363258797 0.9909468342 0.1296039916 -0.2226327371
0.716482108 -0.4528756522 -0.216482108 0.5778756522 0.08215416714 -0.1446541671
"""


@pytest.mark.parametrize(("q", "theirs"), [(0, MEAN), (1, FAIR), (3, FAIRER)])
def test_two_rounds(tiny: Tiny, tmp_path, q: float, theirs: str):
    words = ("algorithm=qfedavg", f"aggregator.q={q}", "aggregator.lr=0.1", "local.lr=0.1", "rounds=2", *TWO_EPOCHS)
    assert_agrees(models(three_clients(tiny, tmp_path, *words)), theirs)
