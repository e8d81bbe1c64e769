"""Triton reads this when it is first imported, which may be by torch: its kernels run in its interpreter here."""

import os

os.environ["TRITON_INTERPRET"] = "1"
