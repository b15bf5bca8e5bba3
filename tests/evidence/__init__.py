"""What authors without the knowledge base get wrong: a product, tickets, and the attacks on what authors wrote."""
