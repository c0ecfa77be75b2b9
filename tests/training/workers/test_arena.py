"""Memory that forked processes share."""

import os

import torch

from fedexp.training.workers.arena import SharedArena


def test_views_are_like_what_they_are_for_and_begin_on_lines_of_the_cache():
    likes = [torch.zeros(3, 5), torch.zeros(7, dtype=torch.float64), torch.zeros((0, 2))]
    views = SharedArena(1).views(likes)
    assert [(view.shape, view.dtype) for view in views] == [(like.shape, like.dtype) for like in likes]
    assert views[2] is likes[2]
    assert [view.data_ptr() % 64 for view in views[:2]] == [0, 0]
    for view in views[:2]:
        view.fill_(view.dim())
    assert views[0].eq(2).all()
    assert views[1].eq(1).all()


def test_what_does_not_fit_stays_where_it_is():
    likes = [torch.zeros(2**17), torch.zeros(2**18), torch.zeros(2**17)]
    views = SharedArena(1).views(likes)
    assert [view is like for view, like in zip(views, likes, strict=True)] == [False, True, False]


def test_results_are_read_while_the_next_ones_are_written():
    arena, like = SharedArena(1), torch.zeros(4)
    first, second, third = (arena.views([like])[0] for _ in range(3))
    first.fill_(1)
    second.fill_(2)
    assert first.tolist() == [1] * 4
    assert third.data_ptr() == first.data_ptr()


def test_a_fork_writes_what_its_parent_reads():
    [view] = SharedArena(1).views([torch.zeros(2)])
    if (child := os.fork()) == 0:
        view.fill_(5)
        os._exit(0)
    os.waitpid(child, 0)
    assert view.tolist() == [5, 5]
