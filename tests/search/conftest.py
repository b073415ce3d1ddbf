import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Tables of these tests are small: on a busy machine, threads would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
