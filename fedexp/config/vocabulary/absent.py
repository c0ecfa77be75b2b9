"""Methods of the field that are not here, by what is nearest in kind; empty where nothing is.

Without them a guess by letters would offer another method that only sounds alike.
"""

from collections.abc import Mapping

_NAMES: Mapping[str, str] = {
    "aggregator=norm_clipping or multi_krum": "flame foolsgold rlr crfl deepsight flare",
    "aggregator=dnc or multi_krum": "signguard auror fedinv lasa fldetector",
    "aggregator=zeno or fltrust": "siren",
    "local=fedntd": "feddf fedmd feddistill fedgen fedgkd fedkd fedgkt dsfl cronus fedet fedftg fedbe fedaux "
    "distillation",
    "local=moon": "fedproc fedproto fedpcl fedtgp contrastive",
    "algorithm=scaffold": "scaffnew proxskip fedlin mime mimelite vrlsgd tamuna",
    "algorithm=feddyn": "fedadmm fedpd fedspeed fedsmoo feddc admm",
    "algorithm=fedprox": "feddane fedsam fedgamma mofedsam fedlesam fedcurv fedsplit sam",
    "algorithm=fednova": "fedshuffle",
    "algorithm=fedavgm": "fedcm fedacg fedglomo slowmo fednag fedmim",
    "algorithm=fedadam": "fedadamw fedlamb",
    "server_optimizer=amsgrad": "fedams",
    "algorithm=agnostic": "drfa",
    "algorithm=fedmgda": "fedfv fedmdfg adafed",
    "algorithm=qfedavg or term": "propfair fedgini fedfa",
    "algorithm=fine_tuned_fedavg": "perfedavg fedmaml maml fedmeta metasgd knnper",
    "algorithm=apfl or fedfomo": "fedphp mapper fedcac pfedgraph pfedsim superfed",
    "algorithm=fedrep or fedper": "fedcp gpfl fedpac feddbe fedas fedgh pfedhn pfedla fedcr pgfed",
    "algorithm=ditto or pfedme": "mocha fedmtl l2gd",
    "algorithm=fedbn": "silobn fixbn fedwon fedap harmofl",
    "algorithm=pfnm or spahm": "fedma otfusion gamf",
    "local=fedlc or fedrs": "ccvr creff balancefl fedloge ratioloss",
    "clustering=cfl or kmeans_updates": "hierarchical agglomerative dbscan spectral flhc fesem fedgroup flexcfl pacfl "
    "fedsoft stocfl",
    "clustering=ifca": "hypcluster",
    "codec=float16": "topk randk qsgd powersgd fedpaq stc signsgd dgc fetchsgd terngrad quantization sparsification "
    "compression int8",
    "pacing=buffered or periodic": "fedat safa asofed port fedspace timelyfl papaya",
    "selector=fedcs or oort": "tifl pyramidfl fedmccs eafl autofl flanp",
    "selector=power_of_choice": "divfl fedcbs favor clusteredsampling fedcor cucb",
    "attack=min_max": "fang minsum agr mpaf",
    "attack=backdoor": "dba neurotoxin edgecase chameleon a3fl iba",
    "privacy=client_central, client_local or dp_sgd": "laplace dpftrl pate shuffledp",
    "dataset=huggingface, which reads what was fetched before": "imagenet tinyimagenet miniimagenet cinic10 celeba "
    "stackoverflow agnews imdb reddit sent140 openimage",
    "model=char_lstm, or torch for a network of your own": "transformer bert distilbert gpt gpt2 llama gru rnn",
    "model=torchvision model.name=vit_b_16": "vit",
    "": "heterofl fjord fedrolex splitfed splitmix splitnn depthfl gossip dfedavg swarm hierfavg secureboost vertical "
    "fedlora flora fedit fedprompt fedmatch dlg gradientinversion homomorphic ckks paillier",
}
NEAREST: Mapping[str, str] = {name: words for words, names in _NAMES.items() for name in names.split()}
