"""Programs from outside: sets of points in the plane."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from outside_program import Outside
from program import Rng


# ------------------------------------------------------------------------------------------------- k-means
def k_means(points, k):
    """Lloyd's algorithm from the first k points: centres, labels, inertia and the number of rounds."""
    centres = points[:k].copy()
    labels = np.full(len(points), -1)
    rounds = 0
    while True:
        distances = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        nearest = distances.argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        rounds += 1
        for j in range(k):
            members = points[labels == j]
            if len(members) > 0:
                centres[j] = members.mean(axis=0)
    return centres, labels, distances.min(axis=1).sum(), rounds


def k_means_inertia(points, k):
    _, _, inertia, _ = k_means(points, k)
    return inertia


def _clouds(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    largest = 200 if full else 20
    sizes = [5, largest, *rng.integers(5, largest + 1, count)][:count]
    clouds = [rng.normal(size=(int(n), 2)) + 3.0 * rng.integers(0, 2, (int(n), 2)) for n in sizes]
    return [(cloud, int(k)) for cloud, k in zip(clouds, rng.integers(1, 5, count), strict=True)]


# --------------------------------------------------------------------------- Barnes and Hut, with index arrays
def quadrant(px, py, x, y):
    return (1 if px > x else 0) + (2 if py > y else 0)


def barnes_hut(points, masses, theta):
    """Accelerations by a quadtree in index arrays: nodes are opened where their size over distance exceeds theta."""
    n = len(points)
    most = 1 + 64 * n
    child = np.full((most, 4), -1)
    body = np.full(most, -1)
    middle = np.zeros((most, 2))
    half = np.zeros(most)
    mass = np.zeros(most)
    moment = np.zeros((most, 2))
    half[0] = np.max(np.abs(points)) + 1e-9
    used = 1
    for i in range(n):
        node = 0
        while True:
            mass[node] += masses[i]
            moment[node] += masses[i] * points[i]
            inner = child[node].max() >= 0
            if not inner and body[node] < 0:
                body[node] = i
                break
            if not inner:
                j = body[node]
                body[node] = -1
                q = quadrant(points[j, 0], points[j, 1], middle[node, 0], middle[node, 1])
                child[node, q] = used
                half[used] = half[node] / 2
                middle[used] = middle[node] + half[used] * np.array([1 if q % 2 else -1, 1 if q >= 2 else -1])
                mass[used] = masses[j]
                moment[used] = masses[j] * points[j]
                body[used] = j
                used += 1
            q = quadrant(points[i, 0], points[i, 1], middle[node, 0], middle[node, 1])
            if child[node, q] < 0:
                child[node, q] = used
                half[used] = half[node] / 2
                middle[used] = middle[node] + half[used] * np.array([1 if q % 2 else -1, 1 if q >= 2 else -1])
                used += 1
            node = child[node, q]
    acceleration = np.zeros((n, 2))
    for i in range(n):
        stack = [0]
        while stack:
            node = stack.pop()
            if mass[node] == 0.0 or body[node] == i:
                continue
            away = moment[node] / mass[node] - points[i]
            distance = math.sqrt(away @ away + 1e-4)
            if body[node] >= 0 or 2.0 * half[node] < theta * distance:
                acceleration[i] += mass[node] * away / distance**3
            else:
                for c in child[node]:
                    if c >= 0:
                        stack.append(c)
    return acceleration


def barnes_hut_power(points, masses, theta):
    acceleration = barnes_hut(points, masses, theta)
    return np.sum(acceleration * points)


# -------------------------------------------------------------------------------- Barnes and Hut, with objects
@dataclass
class Quad:
    x: float
    y: float
    half: float
    mass: float
    mx: float
    my: float
    body: int
    children: list


def insert(quad, i, points, masses):
    quad.mass += masses[i]
    quad.mx += masses[i] * points[i, 0]
    quad.my += masses[i] * points[i, 1]
    if not quad.children and quad.body < 0:
        quad.body = i
        return
    if not quad.children:
        h = quad.half / 2
        quad.children = [
            Quad(quad.x + sx * h, quad.y + sy * h, h, 0.0, 0.0, 0.0, -1, []) for sy in (-1, 1) for sx in (-1, 1)
        ]
        j, quad.body = quad.body, -1
        q = quadrant(points[j, 0], points[j, 1], quad.x, quad.y)
        insert(quad.children[q], j, points, masses)
    q = quadrant(points[i, 0], points[i, 1], quad.x, quad.y)
    insert(quad.children[q], i, points, masses)


def pull(quad, i, points, theta):
    if quad.mass == 0.0 or quad.body == i:
        return np.zeros(2)
    away = np.array([quad.mx, quad.my]) / quad.mass - points[i]
    distance = math.sqrt(away @ away + 1e-4)
    if quad.body >= 0 or 2.0 * quad.half < theta * distance:
        return quad.mass * away / distance**3
    total = np.zeros(2)
    for child in quad.children:
        total = total + pull(child, i, points, theta)
    return total


def barnes_hut_objects(points, masses, theta):
    """Accelerations by a quadtree of objects."""
    root = Quad(0.0, 0.0, np.max(np.abs(points)) + 1e-9, 0.0, 0.0, 0.0, -1, [])
    for i in range(len(points)):
        insert(root, i, points, masses)
    return np.array([pull(root, i, points, theta) for i in range(len(points))])


def barnes_hut_objects_power(points, masses, theta):
    acceleration = barnes_hut_objects(points, masses, theta)
    return np.sum(acceleration * points)


def _bodies(rng: Rng, count: int, full: bool) -> list[tuple[Any, ...]]:
    largest = 60 if full else 8
    sizes = [1, largest, *rng.integers(1, largest + 1, count)][:count]
    return [(rng.uniform(-1.0, 1.0, (int(n), 2)), rng.uniform(0.5, 2.0, int(n)), 0.6) for n in sizes]


PROGRAMS = (
    Outside(k_means, _clouds, loss=k_means_inertia, wrt=(0,)),
    Outside(barnes_hut, _bodies, loss=barnes_hut_power, wrt=(0, 1)),
    Outside(barnes_hut_objects, _bodies, loss=barnes_hut_objects_power, wrt=(0, 1),
            refused="objects that the program links into a tree of any depth are not written to"),
)
