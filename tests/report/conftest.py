from run_folders import make_run

__all__ = ["make_run"]
