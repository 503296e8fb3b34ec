within Heating.Records;
record Brick = Wall(R = 0.004, C = 3e6);
