"""Everything that a YAML file of `conf/` can choose.

`conf/GROUP/OPTION.yaml` names a class of `fedexp/parts/GROUP/OPTION.py`; what every option of the group must do is in
`fedexp/parts/GROUP/contract.py`, whose base class does nothing: it is the option `none`.
"""
